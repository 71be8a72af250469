"""How much memory a device has left."""

from pathlib import Path

import torch

from resgym.game.devices import available_bytes


def test_cached_pages_of_a_container_count_as_free(monkeypatch):
    files = {
        "meminfo": "MemTotal: 5000 kB\nMemAvailable: 2000 kB",
        "memory.max": "1000",
        "memory.current": "900",
        "memory.stat": "anon 400\ninactive_file 300",
    }
    monkeypatch.setattr(Path, "read_text", lambda path: files[path.name])
    assert available_bytes(torch.device("cpu")) == 400
    files["memory.max"] = "max"
    assert available_bytes(torch.device("cpu")) == 2000 * 1024
