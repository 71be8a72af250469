"""Positions and answers in words: round trips, replies of every kind, players, chats."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import resgym
from resgym.cli import main
from resgym.game.actions import action_axes, host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.players import check_player, make_agent, make_host
from resgym.text import (
    AnswerError,
    Decision,
    TextPlayer,
    answers_of,
    chat_of,
    decisions_of,
    read_answer,
    read_position,
    record_games,
    score_decisions,
    write_answer,
)

SPEC = GameSpec(3, 8, 20)
START = [(2, 0, 0), (0, 3, 0), (0, 0, 5)]


@given(data=st.data(), dimension=st.integers(2, 10))
def test_positions_and_answers_are_read_as_they_were_written(data, dimension):
    point = st.tuples(*[st.integers(0, 2**59)] * dimension)
    points = data.draw(st.lists(point, min_size=2, max_size=12))
    axes = data.draw(st.sampled_from(action_axes(dimension)))
    axis = data.draw(st.sampled_from(axes))
    for role, coords, answer in (("host", None, axes), ("agent", axes, (axis,))):
        text = chat_of(role, points, coords)[1]["content"]
        assert read_position(text) == (points, coords or ())
        assert read_answer(write_answer(answer, role), role, dimension, coords) == answer


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_a_thousand_games_in_words_are_those_played_without(seat):
    """Every move of 1,000 games goes through text, and none is misread."""
    said = TextPlayer(seat, answers_of, retries=0, on_unreadable="error")
    players = {"host": make_host("zeillinger"), "agent": make_agent("greedy_points")}
    said.ask = lambda chats: answers_of(chats, agent="greedy_points")
    plain = record_games(players["host"], players["agent"], SPEC, 1000, seed=5)
    spoken = record_games(*({**players, seat: said}.values()), SPEC, 1000, seed=5)
    assert spoken == plain
    assert said.counts == Counter(
        decisions=sum(len(game.axis) for game in plain),
        replies=said.counts["decisions"],
        unreadable=0,
        illegal=0,
        given_up=0,
    )
    assert said.counts["decisions"] > 3000


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("answer: {x, z}", (0, 2)),
        ("Let me think: y is small.\n\n**Answer:** z, X", (0, 2)),
        ("answer: {x, y}\nNo, better:\nANSWER = `x z`", (0, 2)),
        ("{z,x,x}", (0, 2)),
        ("I take\n{x, z}", "unreadable"),
        ("answer: both x and z", "unreadable"),
        ("answer: xz", "unreadable"),
        ("", "unreadable"),
        ("answer:", "unreadable"),
        ("answer: {x, w}", "illegal"),
        ("answer: {x, x}", "illegal"),
    ],
)
def test_replies(reply, expected):
    if isinstance(expected, tuple):
        assert read_answer(reply, "host", 3) == expected
        return
    with pytest.raises(AnswerError) as caught:
        read_answer(reply, "host", 3)
    assert caught.value.kind == expected
    assert "\n" not in str(caught.value)


def test_an_agent_answers_within_the_set():
    for reply in ("answer: y", "answer: {x, z}"):
        with pytest.raises(AnswerError, match=r"one axis of \{x, z\}"):
            read_answer(reply, "agent", 3, (0, 2))


def one_move(player, starts=(START, [(1, 0, 0)], START)):
    """What a host says in some positions; the second one is over."""
    state = state_from_points(list(starts), GameSpec(3, 5))
    return player.act(state, None, RowRandom(torch.arange(len(starts)))).tolist()


def test_wrong_replies_are_answered_and_counted():
    heard = []
    # Row 0 fails twice, row 2 is right at once, row 1 is over and is not asked about.
    replies = iter([["answer: {x}", "answer: {x, z}"], ["hm\nhm"], ["answer: {y, z}"]])

    def ask(chats):
        heard.append(chats)
        return next(replies)

    player = TextPlayer("host", ask, retries=2)
    assert one_move(player) == [2, 0, 1]
    assert [len(chats) for chats in heard] == [2, 1, 1]
    last = heard[-1][0]
    assert [message["role"] for message in last] == ["system", "user", *["assistant", "user"] * 2]
    assert last[2]["content"] == "answer: {x}"
    assert "two axes or more of {x, y, z}, got {x}" in last[3]["content"]
    assert len(heard[0][0]) == 2  # what was handed out is not written to later
    assert player.counts == Counter(decisions=2, replies=4, unreadable=1, illegal=1, given_up=0)


@pytest.mark.parametrize(("rule", "expected"), [("first", [0, 0, 0]), ("all_coord", [3, 0, 3])])
def test_who_plays_where_nothing_is_readable(rule, expected):
    player = TextPlayer("host", lambda chats: ["?"] * len(chats), retries=1, on_unreadable=rule)
    assert one_move(player) == expected
    assert player.counts["given_up"] == 2
    assert player.counts["replies"] == 4


def test_an_agent_that_says_nothing_plays_the_lowest_axis_of_the_set():
    player = TextPlayer("agent", lambda chats: [""] * len(chats))
    state = state_from_points(START, GameSpec(3, 5))
    assert player.act(state, host_action_table(3)[2:3], RowRandom(torch.tensor([0]))).tolist() == [
        1
    ]


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda chats: ["?"] * len(chats), ValueError, "row 0, asked 3 times"),
        (lambda chats: "answer: {x, y}", TypeError, "must return a list of texts"),
        (lambda chats: [], ValueError, "must return 2 texts, got 0"),
        (lambda chats: [None] * len(chats), TypeError, "got one NoneType"),
    ],
)
def test_what_stops_a_game(ask, kind, words):
    with pytest.raises(kind, match=words):
        one_move(TextPlayer("host", ask, on_unreadable="error"))


@pytest.mark.parametrize("role", ["host", "agent"])
def test_the_contract_of_players(role):
    check_player(TextPlayer(role, answers_of), num_games=8)


def test_a_player_by_its_dotted_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "speaking.py").write_text(
        "from resgym.text import TextPlayer, answers_of\n"
        "host = TextPlayer('host', answers_of)\n"
        "def agent(retries=2):\n    return TextPlayer('agent', answers_of, retries=retries)\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    size = ["--games", "20", "--max-num-points", "5", "--json"]
    assert main(["rho", "speaking:host", "speaking:agent(retries=1)", *size, "--trust"]) == 0
    spoken = json.loads(capsys.readouterr().out)["moves"]
    assert main(["rho", "zeillinger", "speaking:agent", *size, "--trust"]) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == spoken
    for name, trust, words in (
        ("speaking:host", [], "names code: give --import"),
        ("speaking:number", ["--trust"], "must be a Player or build one, got 3"),
        ("speaking:none", ["--trust"], "cannot be imported"),
        ("speaking:agent", ["--trust"], "must build a host"),
        ("a b:c", ["--trust"], "must be written like 'module:name'"),
    ):
        assert main(["rho", name, "random", *size, *trust]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line


@pytest.mark.parametrize("role", ["host", "agent"])
def test_labels_are_what_the_solver_proves(role):
    spec = GameSpec(3, 4, 4)
    games = record_games("random", "random", spec, 12, seed=1, max_moves=6)
    scored = score_decisions(decisions_of(games, role))
    assert [each.played for each in scored] == [
        (axis,) if role == "agent" else axes
        for game in games
        for axes, axis in zip(game.axes, game.axis, strict=True)
    ]
    for each in scored[:20]:
        ways = action_axes(3) if role == "host" else [(axis,) for axis in each.coords]
        found = {way: worth(each, way, role) for way in ways}
        best = (min if role == "host" else max)(found.values())
        assert each.value == 1 + best
        assert set(each.optimal) == {way for way, value in found.items() if value == best}


def worth(decision, way, role):
    """The depth after a move, by `resgym.solve` of what it leads to."""
    axes = way if role == "host" else decision.coords
    after = []
    for axis in axes if role == "host" else way:
        moved = [
            tuple(sum(p[k] for k in axes) if j == axis else p[j] for j in range(3))
            for p in decision.points
        ]
        after.append(resgym.solve(moved).value)
    return max(after)


def test_a_line_to_learn_from_is_what_the_player_is_asked():
    game = record_games("zeillinger", "random", SPEC, 1)[0]
    (first, *_), heard = score_decisions(decisions_of([game], "host")), []

    def ask(chats):
        heard.extend(chats)
        return [""] * len(chats)

    player = TextPlayer("host", ask, retries=0)
    one_move(player, [game.positions[0]])
    line = json.loads(json.dumps(first.chat(first.optimal[0])))
    assert line["messages"][:2] == heard[0]
    reply = line["messages"][2]
    assert reply["role"] == "assistant"
    assert read_answer(reply["content"], "host", 3) == first.optimal[0]
    assert Decision.from_dict(json.loads(json.dumps(asdict(first)))) == first
    assert line["value"] == resgym.solve(game.positions[0]).value


def test_games_side_by_side_are_those_alone():
    many = record_games("random", "random", SPEC, 20, seed=3, max_moves=9)
    assert record_games("random", "random", SPEC, 5, seed=3, max_moves=9) == many[:5]
    assert all(game.finished or len(game.axes) == 9 for game in many)
