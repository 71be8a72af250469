"""Checkpoint directories: exact, complete or absent, and every kind of damage noticed."""

import io
import json
import math
import os
import pickle
import random
from contextlib import suppress
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch

from sb3_ext.runs.checkpoint import (
    MANIFEST,
    SCHEMA,
    STATE,
    CheckpointError,
    checkpoint_name,
    list_checkpoints,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from sb3_ext.runs.files import CheckpointWarning, file_digest
from tests.sb3_ext.helpers import equal
from tests.sb3_ext.runs.killed import at_call, die, fork, full

PLAIN = {
    "count": 3,
    "big": 2**70,
    "rate": 0.1 + 0.2,
    "tiny": 5e-324,
    "none": None,
    "flag": True,
    "text": "ü \n \"'",
    "list": [1, [2.5, {"deep": "x"}], []],
    "infinite": [math.inf, -math.inf],
    "time/fps ~1": 3,
    7: (1, [2], ()),
    "$tensor": {"dict": [[1]]},
    "array": np.uint32([0, 7])[::-1],
    "number": np.float64(0.5),
}


def make_state(fill=0.0):
    base = torch.arange(12.0).reshape(3, 4) + fill
    return {
        "policy": {
            "weights": {"a.weight": base, "a.bias": torch.tensor([1, 2], dtype=torch.int8)},
            "row": base[1],  # of the same memory
            "view": base[:, 1],
            "scalar": torch.tensor(2.5, dtype=torch.float64),
            "empty": torch.empty(0, 3),
        },
        "random": torch.Generator().manual_seed(1).get_state(),
        "a.b": {
            "x/y": torch.tensor([1]),
            "x": {"y": torch.tensor([2])},
            "x~1y": torch.tensor([3]),
            1: torch.tensor([4]),
        },
        "rows": [torch.tensor([True, False]), 7, torch.tensor([2**62])],
        "plain": PLAIN,
    }


def rewrite_manifest(path):
    """The manifest that a hostile writer would make for the files as they are."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = file_digest(path / name)
    (path / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def saved(tmp_path):
    return save_checkpoint(tmp_path / checkpoint_name(100), make_state())


def test_state_comes_back_exactly(saved):
    assert equal(load_checkpoint(saved), make_state())
    nan = save_checkpoint(saved.with_name("nan"), {"x": math.nan})
    assert math.isnan(load_checkpoint(nan)["x"])


def test_parts_are_read_alone(saved):
    (saved / "rows.safetensors").write_bytes(b"broken")
    assert list(load_checkpoint(saved, ["policy", "plain"])) == ["policy", "plain"]
    with pytest.raises(CheckpointError, match=r"rows\.safetensors"):
        load_checkpoint(saved)
    with pytest.raises(
        CheckpointError, match=r"parts: no 'agent\.policy', it has \['a\.b', 'plain'"
    ):
        load_checkpoint(saved, ["agent.policy"])


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"a": {"b": [1, object()]}}, TypeError, "a/b/1: got object"),
        ({"a": {1.5: 2}}, TypeError, "a: got the key 1.5"),
        ({"a": [np.array("x")]}, ValueError, "a/0: .*numpy.str_"),
        ({"a/b": 1}, ValueError, "'a/b' cannot be the name"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_writing(state, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save_checkpoint(tmp_path / "run" / "x", state)
    assert not [*tmp_path.iterdir()]


def test_every_flipped_bit_and_truncation_is_noticed(saved):
    """Each byte of the small files, a sample of the larger ones; no other kind of error."""
    random_bits = random.Random(0)
    for file in sorted(saved.iterdir()):
        content = file.read_bytes()
        for position in range(0, len(content), max(1, len(content) // 40)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << random_bits.randrange(8)
            file.write_bytes(damaged)
            if file.name == MANIFEST:  # of which spaces and digests of what is not read may change
                with suppress(CheckpointError):
                    assert equal(load_checkpoint(saved), make_state())
                continue
            with pytest.raises(CheckpointError) as caught:
                load_checkpoint(saved)
            assert file.name in str(caught.value)
            assert "\n" not in str(caught.value)
        for size in {0, 1, len(content) // 2, len(content) - 1}:
            file.write_bytes(content[:size])
            with pytest.raises(CheckpointError, match=file.name):
                load_checkpoint(saved)
        file.unlink()
        with pytest.raises(CheckpointError, match="missing"):
            load_checkpoint(saved)
        file.write_bytes(content)
    load_checkpoint(saved)


class Bomb:
    def __reduce__(self):
        return os._exit, (3,)


def zipped_pickle():
    torch.save(Bomb(), file := io.BytesIO())
    return file.getvalue()


def state_of(parts):
    return json.dumps({"parts": parts}).encode()


def manifest_of(files, schema=SCHEMA):
    return json.dumps({"files": files, "schema": schema}).encode()


TENSORS, NO_TENSORS = "policy.safetensors", r"policy\.safetensors: "


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (TENSORS, zipped_pickle(), NO_TENSORS),
        (TENSORS, pickle.dumps(Bomb()), NO_TENSORS),
        (TENSORS, b"\xff" * 8 + b"{}", NO_TENSORS),
        (TENSORS, (2**40).to_bytes(8, "little") + b"{", NO_TENSORS),
        (STATE, state_of({"policy": {"tensor": "nothing"}}), "policy: 'nothing' is missing"),
        (STATE, state_of({"policy": {"pickle": "x"}}), "policy: got 'pickle'"),
        (STATE, state_of({"policy": {"dict": [[[], 1]]}}), "policy: "),
        (STATE, b"[" * 200_000, "state.json: "),
        (MANIFEST, b"[" * 200_000, "manifest.json: "),
        (MANIFEST, manifest_of({}), "state.json: .*missing"),
        (MANIFEST, manifest_of({"state.json": 7}), "state.json: "),
        (MANIFEST, manifest_of({}, SCHEMA + 1), "schema: got 4, this version reads 3"),
    ],
)
def test_other_contents_are_refused_unopened(saved, name, content, message):
    (saved / name).write_bytes(content)
    if name != MANIFEST:
        rewrite_manifest(saved)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(saved)
    assert str(caught.value).startswith(f"{saved}/")
    assert "\n" not in str(caught.value)


def test_damaged_newest_falls_back_and_says_so(saved):
    newer = save_checkpoint(saved.with_name(checkpoint_name(200)), make_state(1.0))
    assert equal(load_checkpoint(saved.parent), make_state(1.0))
    (newer / "policy.safetensors").write_bytes(b"")
    with pytest.warns(CheckpointWarning, match=r"200.policy.safetensors: .*using .*100 instead"):
        assert equal(load_checkpoint(saved.parent), make_state())
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(newer)
    (newer / "manifest.json").unlink()
    with pytest.warns(CheckpointWarning, match="manifest"):
        load_checkpoint(saved.parent)
    (saved / "state.json").unlink()
    with pytest.raises(CheckpointError, match=r"manifest.*; .*state\.json"):
        load_checkpoint(saved.parent)


def test_prune(tmp_path):
    paths = [save_checkpoint(tmp_path / checkpoint_name(n), {"n": n}) for n in range(8, 13)]
    best = save_checkpoint(tmp_path / "best", {})
    orphan = tmp_path / (checkpoint_name(99) + ".tmp")
    orphan.mkdir()
    (orphan / "state.json").write_text("half")
    own = tmp_path / "notes.tmp"
    own.write_text("of the user")
    with suppress(OSError):  # a folder of other things is not replaced
        save_checkpoint(tmp_path, {})
    prune_checkpoints(tmp_path, 2)
    assert sorted(tmp_path.iterdir()) == sorted([best, own, *paths[3:]])
    with pytest.raises(ValueError, match="keep_last must be at least 1, got 0"):
        prune_checkpoints(tmp_path, 0)


@pytest.mark.parametrize("replace", [False, True])
def test_full_disk_leaves_earlier_checkpoints_and_no_litter(replace, tmp_path):
    """At every synchronisation and rename of writing a new one and of replacing one."""
    number = 100 if replace else 200
    for fail_at in count(1):
        run = tmp_path / str(fail_at)
        save_checkpoint(run / checkpoint_name(100), make_state())
        with pytest.MonkeyPatch.context() as patch:
            calls = at_call(fail_at, full, os, "fsync", "replace", put=patch.setattr)
            with suppress(OSError):
                save_checkpoint(run / checkpoint_name(number), make_state(1.0))
                assert len(calls) < fail_at
        failed = len(calls) >= fail_at
        state = load_checkpoint(run)
        assert equal(state, make_state(1.0)) or (failed and equal(state, make_state()))
        assert not list(run.glob("*.tmp"))
        for path in list_checkpoints(run):
            load_checkpoint(path)
        save_checkpoint(run / checkpoint_name(300), make_state(2.0))  # space again
        assert equal(load_checkpoint(run), make_state(2.0))
        if not failed:
            break
    # Every file, the folder, and what holds its name are synchronised, and it is renamed.
    assert fail_at > len([*path.iterdir()]) + 3 + 2 * replace


def write_some(run, kill_at):
    """Four checkpoints, unless killed; a file beside them has the number of the last."""
    at_call(kill_at, die, os, "fsync", "replace", "unlink", "rmdir")
    for number in (1, 2, 2, 3):
        state = {"a": torch.full((9,), number), "n": number}
        save_checkpoint(run / checkpoint_name(number), state)
        run.with_suffix(".done").write_text(str(number))
        prune_checkpoints(run, 2)
    return 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("error::sb3_ext.runs.files.CheckpointWarning")  # of any damage
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.long)])
def test_killed_while_writing(every, tmp_path):
    for kill_at in count(2, every):
        run = tmp_path / str(kill_at)
        killed = fork(partial(write_some, run, kill_at))
        if (done := run.with_suffix(".done")).exists():
            state = load_checkpoint(run)
            assert state["n"] >= int(done.read_text())
            assert torch.equal(state["a"], torch.full((9,), state["n"]))
            for path in list_checkpoints(run):
                load_checkpoint(path)
        save_checkpoint(run / checkpoint_name(9), {"n": 9}, keep_last=1)
        assert [path.name for path in run.iterdir()] == [checkpoint_name(9)]
        if not killed:
            break
    assert kill_at > 40
