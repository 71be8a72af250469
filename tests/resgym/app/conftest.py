import contextlib
import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = """if __name__ == "__main__":
    from resgym.cli import main
    main()"""


class Served:
    """A server in a process of its own, on a free port, with a folder of models."""

    def __init__(self, folder):
        self.models = folder / "models"
        (folder / "secret.txt").write_text("x^2+y^3+z^77", encoding="utf-8")
        self.models.mkdir()
        (self.models / "broken.zip").write_bytes(b"no archive")
        command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--workers", "1"]
        command += ["--models", str(self.models)]
        self.errors = (folder / "errors.txt").open("w+", encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=folder, env=env
        )
        self.address = self.process.stdout.readline().split()[3]
        self.host = urlsplit(self.address).netloc

    def get(self, path):
        """Status and text, once the server is not too busy to answer, whatever else runs here."""
        for _ in range(60):
            with contextlib.closing(HTTPConnection(self.host, timeout=60)) as connection:
                connection.request("GET", quote(path, safe="/?=&%+:,"))
                answer = connection.getresponse()
                text = answer.read().decode()
            if answer.status not in (503, 504):
                break
        return answer.status, text

    def ask(self, name, **fields):
        status, text = self.get(f"/api/{name}?{urlencode(fields)}")
        return status, json.loads(text)

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
        self.errors.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    for name in ("starlette", "uvicorn"):
        pytest.importorskip(name, reason="needs the extra web")
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()
