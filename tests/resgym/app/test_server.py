"""The server as a process: its routes, and what it answers to hostile requests."""

import contextlib
import os
import random
import socket
import string
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import serve
from resgym.app.questions import list_models


def test_a_game_a_hint_and_a_tree(served):
    status, game = served.ask("game", start="E8", seat="host", opponent="greedy_points", named="01")
    assert (status, len(game["history"])) == (200, 1)
    assert served.ask("hint", start="E8", seat="host")[1]["hint"].startswith("{x, y, z} is best")
    assert served.ask("score", start="E8", seat="host")[1]["par"] == 7
    assert served.ask("tree", start="E8")[1]["num_nodes"] > 50
    assert served.ask("game", start="x^2+")[1]["error"].endswith("x^2+\n      ^")


def test_many_play_at_once(served, capsys):
    def play(seed):
        return served.ask("game", start="E8", seat="host", named="01", seed=seed)[0]

    with ThreadPoolExecutor(20) as clients:
        assert set(clients.map(play, range(40))) == {200}
    port = str(urlsplit(served.address).port)
    serve.main(["--port", port, "--clients", "2", "--seconds", "0.5"])
    said = capsys.readouterr().out
    assert said.count("\n") == 1, said


def test_the_page_and_its_files(served):
    folder = Path(__file__).resolve().parents[3] / "resgym" / "app" / "page"
    assert served.get("/")[1] == (folder / "index.html").read_text(encoding="utf-8")
    for path in folder.iterdir():
        status, text = served.get(f"/page/{path.name}")
        assert (status, text) == (200, path.read_text(encoding="utf-8"))
        # Nothing is fetched from elsewhere.
        assert "http" not in text.replace("http://www.w3.org/", "")


def test_models_are_those_of_the_folder(served):
    assert "models/broken.zip" in served.ask("options")[1]["hosts"]
    status, answer = served.ask("game", start="E8", seat="agent", opponent="models/broken.zip")
    assert (status, "broken.zip" in answer["error"]) == (400, True)
    status, answer = served.ask("game", start="E8", opponent="models/../secret.txt")
    assert (status, "listed model" in answer["error"]) == (400, True)


def test_only_plain_files_and_checkpoints_below_the_folder_are_listed(tmp_path):
    top = tmp_path / "models"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "model.zip").write_bytes(b"")
    deep = top / "d1" / "d2" / "d3" / "d4" / "d5"
    for place in (top / "a" / "b", top / ".hidden", deep):
        place.mkdir(parents=True)
        (place / "best.zip").write_bytes(b"")
    (top / "c").mkdir()
    (top / "c" / "manifest.json").write_text("{}")
    (top / "linked").symlink_to(tmp_path / "outside")
    (top / "linked.zip").symlink_to(tmp_path / "outside" / "model.zip")
    os.mkfifo(top / "a" / "pipe.zip")
    for name in (b"\xff", b"two\nlines"):
        odd = Path(os.fsdecode(os.fsencode(top) + b"/" + name))
        odd.mkdir()
        (odd / "model.zip").write_bytes(b"")
        odd.with_suffix(".zip").write_bytes(b"")
    assert list(list_models(top)) == ["a/b/best.zip", "c"]
    assert list_models(None) == {}


# What only a server meets; bad questions themselves are in test_answers.
HOSTILE = [
    *Path(__file__).with_name("hostile.txt").read_text().splitlines(),
    "/api/game?start=" + "(" * 500 + "x" + ")" * 500,
    "/api/game?start=" + "x" * 7000,
    "/api/score?start=E8&moves=" + "01.0," * 199 + "01.0",
]


def test_hostile_requests_are_refused_in_one_line(served):
    draw = random.Random(3)
    noise = ["".join(draw.choices(string.printable, k=60)).encode() for _ in range(15)]
    quoted = ["".join(f"%{byte:02x}" for byte in text) for text in noise]
    for path in [*HOSTILE, *(f"/api/game?start={text}" for text in quoted)]:
        status, text = served.get(path)
        assert not any(secret in text for secret in ("z^77", "z⁷⁷", "Traceback"))
        assert status == 200 or (len(text) < 900 and "\n" not in text.strip()), path
    assert served.said() == ""
    assert served.ask("game", start="E8")[0] == 200


def test_a_request_of_any_size_is_refused(served):
    status, text = served.get("/api/game?start=" + "x" * 10_000)
    assert (status, "at most 8000 characters" in text) == (414, True)
    # The server does not read on, so that the answer may be lost while the rest is sent.
    with contextlib.suppress(ConnectionError):
        status, text = served.get("/api/game?start=" + "x" * 1_000_000)
        assert (status, len(text) < 200) == (400, True)
    assert served.ask("game", start="E8")[0] == 200


def test_half_requests_shut_nobody_out(served):
    """Nor may one be sent byte by byte for longer than the time limit."""
    parts = urlsplit(served.address)
    with contextlib.ExitStack() as held:

        def half():
            made = socket.create_connection((parts.hostname, parts.port))
            made.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            return held.enter_context(made)

        for _ in range(620):
            half()
        begin = time.monotonic()
        assert served.get("/")[0] == 200
        assert time.monotonic() - begin < 5
        last, begin, alive = half(), time.monotonic(), True
        while alive and time.monotonic() - begin < 30:
            time.sleep(0.2)
            try:
                last.sendall(b"x")
            except ConnectionError:
                alive = False
        assert not alive
