"""Folders of models: what is listed, what is never reached."""

from __future__ import annotations

import os
from pathlib import Path

from resgym.web.models import list_models


def test_only_plain_files_and_checkpoints_below_the_folder_are_listed(tmp_path):
    top = tmp_path / "models"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "model.zip").write_bytes(b"")
    for place in (top / "a" / "b", top / ".hidden"):
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
