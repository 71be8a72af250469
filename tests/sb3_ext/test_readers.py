"""Every reader of files refuses in one line what it cannot read, at once and in little memory."""

import json
import math
import os
import signal
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save

import resgym
from resgym.benchmark import Solved
from resgym.files import MAX_DEPTH, parse_json
from resgym.proofs.certificate import read_certificate
from resgym.scoreboard import read_rows
from sb3_ext.checkpoints.models import MODEL
from sb3_ext.config.sections import read_mapping
from sb3_ext.runs.checkpoint import MANIFEST, STATE, join_state
from sb3_ext.runs.files import RunFolder
from sb3_ext.train.config_files import saved_config
from sb3_ext.train.curves import read_curves
from sb3_ext.train.loading import load_policy


@pytest.fixture(autouse=True)
def _never_waits():
    """Opening a pipe waits for a writer for ever; a signal ends what would."""

    def end(*_):
        raise AssertionError("a pipe was opened, or reading takes too long")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def checkpoint(path):
    path.with_name(STATE).write_text("{}")
    return load_policy(path.parent)


def model_of_train(path):
    with zipfile.ZipFile(path.parent / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    return load_policy(path.parent / "model.zip")


# A file, and what reads it.
READERS = {
    "starts": ("starts.txt", lambda path: resgym.rho("random", "random", games=4, starts=path)),
    "a polynomial": ("points.poly", resgym.parse),
    "points": ("points.json", resgym.parse),
    "scoreboard": ("board.json", read_rows),
    "certificate": ("proof.jsonl", read_certificate),
    "configuration": ("any.yml", read_mapping),
    "configuration of a run": ("config.yml", lambda path: saved_config(path.parent)),
    "configuration beside a model": ("config.yml", model_of_train),
    "model of SB3": ("model.zip", load_policy),
    "model": ("other.safetensors", load_policy),
    "solved positions": ("solved.npz", Solved.load),
    "history": ("rho.json", lambda path: read_curves(path.parent)),
    "evaluations": ("evaluations.jsonl", lambda path: read_curves(path.parent)),
    "model of a card": (MODEL, lambda path: load_policy(path.parent)),
    "checkpoint": (MANIFEST, checkpoint),
}
DEFECTS = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "missing": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),  # not readable, to root neither
    "large": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**43),
    "deep": lambda path: path.write_text("[" * 200_000),
    "deep but whole": lambda path: path.write_text("[" * 500 + "]" * 500),
    "deep mappings": lambda path: path.write_text('{"a":' * 200_000),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe{}"),
    "empty": lambda path: path.write_bytes(b""),
    "a number": lambda path: path.write_text("9" * 5000),
    "another form": lambda path: path.write_text('[{"updates": [[]], "rho": 3}, null, 1e999]'),
}


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("name", READERS)
def test_what_cannot_be_read_is_refused_in_one_line(name, defect, tmp_path):
    file, read = READERS[name]
    DEFECTS[defect](tmp_path / file)
    with pytest.raises((TypeError, ValueError)) as error:
        read(tmp_path / file)
    text = str(error.value).partition("\n  ")[0]  # what is parsed is shown, with a caret
    assert "\n" not in text
    assert len(text) <= 1000


def test_lines_of_metrics_that_are_damaged_are_dropped(tmp_path):
    lines = ["[" * 200_000, "[]", "3", '{"step": "x"}', '{"step": 1}', '{"step": 2}', '{"step":']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    RunFolder(tmp_path).keep_lines_until("metrics.jsonl", 1)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n'


def solved(**changes):
    """The arrays of one position of three axes."""
    whole = {name: np.array(each, np.int8) for name, each in SOLVED.items()}
    return {**whole, **changes}


SOLVED = {
    "solver": 1,
    "points": [[[2, 0, 0], [0, 3, 0]]],
    "count": [2],
    "split": [0],
    "costs": [[3, 3, 3, 3]],
    "after": [[[-1] * 3] * 4],
}
WRONG = {
    "floats": {"costs": np.ones((1, 4))},
    "text": {"count": np.array(["2"])},
    "objects": {"count": np.array([None])},
    "booleans": {"split": np.array([True])},
    "times": {"split": np.array([0], "M8[s]")},
    "records": {"count": np.zeros(1, [("a", "i4")])},
    "rows": {"count": np.array([2, 2])},
    "sets": {"costs": np.ones((1, 5), int)},
    "axes": {"points": np.ones((1, 2, 60), int)},
    "no axis": {"points": np.array(3)},
    "count": {"count": np.array([3])},
    "one point": {"count": np.array([1])},
    "split": {"split": np.array([3])},
    "large": {"points": np.array([[[2**60, 0, 0], [0, 3, 0]]])},
    "negative": {"points": np.array([[[-2, 0, 0], [0, 3, 0]]])},
    "bomb": {"more": np.zeros(10_001, np.int8)},
}


@pytest.mark.parametrize("case", [*WRONG, *SOLVED])
def test_arrays_of_other_types_sizes_and_numbers_are_refused(case, tmp_path, monkeypatch):
    monkeypatch.setattr("resgym.benchmark.solved.MAX_SIZE", 10_000)
    from resgym.solver.labels import SOLVER_VERSION

    good = solved(solver=np.array(SOLVER_VERSION))
    np.savez_compressed(tmp_path / "good.npz", **good)
    assert len(Solved.load(tmp_path / "good.npz")) == 1
    bad = {name: each for name, each in good.items() if name != case} | WRONG.get(case, {})
    np.savez_compressed(tmp_path / "bad.npz", **bad)
    with pytest.raises(ValueError, match=r"^data: .*bad\.npz: ") as error:
        Solved.load(tmp_path / "bad.npz")
    assert "\n" not in str(error.value)


def test_small_numbers_count_as_much_memory_as_they_will_take(tmp_path, monkeypatch):
    file = tmp_path / "wide.npz"
    np.savez_compressed(file, **solved(costs=np.zeros((1, 2_000), np.int8)))
    monkeypatch.setattr("resgym.benchmark.solved.MAX_SIZE", 10_000)
    with pytest.raises(ValueError, match="size: got 16168 bytes; expected at most 10000"):
        Solved.load(file)


def test_lists_may_lie_inside_each_other_as_deep_as_is_said():
    assert parse_json("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="more than 100 lists"):
        parse_json("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("key", [math.inf, None, True, [1], {"tensor": "x"}])
def test_a_state_has_no_keys_that_could_not_be_written(key):
    with pytest.raises(TypeError, match=r"got the key .*; expected text or whole"):
        join_state({"dict": [["a", 1], [key, 1]]}, {})


def test_the_description_of_a_policy_is_bounded(tmp_path):
    file = tmp_path / "model.safetensors"
    for text in ("[" * 200_000, "[]", json.dumps({"a": [None]}), "9" * 5000):
        file.write_bytes(save({"x": np.ones(1)}, {"policy": text}))
        with pytest.raises(ValueError, match=r"model\.safetensors") as error:
            load_policy(file)
        assert "\n" not in str(error.value)
