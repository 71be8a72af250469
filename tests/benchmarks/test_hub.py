"""The data for the Hub: read back equal, with a card that names what is there."""

import pytest
import yaml

from resgym.benchmark import load
from resgym.benchmark.solved import GAMES

pytest.importorskip("pyarrow", reason="needs pyarrow")

from benchmarks import hub


def test_the_files_are_the_data(tmp_path):
    hub.main([str(tmp_path)])
    _, head, text = (tmp_path / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    configs = yaml.safe_load(head)["configs"]
    assert [each["config_name"] for each in configs] == list(GAMES)
    for part, (file,) in (each.values() for each in configs):
        data = load(part)
        again = hub.read(tmp_path / file["path"], data.points.shape[1], file["split"])
        assert again.digest() == data.digest()
        assert f"| `{part}` | {len(data)} | - | - |" in text
