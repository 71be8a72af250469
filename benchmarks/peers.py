"""Run the tests of stable-baselines3 itself on this package's classes: ``make peers``.

  SB3_SOURCE=stable_baselines3-2.9.2 python -m benchmarks.peers
  SB3_SOURCE=... python -m benchmarks.peers --only ddqn -- -k save_load -x

`SB3_SOURCE` is the unpacked source of the installed version, which has the folder `tests`:

  python -m pip download --no-deps --no-binary :all: stable-baselines3==2.9.2

Each part puts one class in the place of SB3's while the tests are imported, and runs those that use
it. docs/clients.md lists the tests that fail, with the reasons. Exit code 1 when another test
fails, 2 without the source.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import stable_baselines3
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common import buffers, env_util, off_policy_algorithm, vec_env

from sb3_ext import DDQN, TensorVecEnv
from sb3_ext.replay.buffers import TensorReplayBuffer

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "docs" / "clients.md"
PART, RESULTS = "PEERS_PART", "PEERS_RESULTS"

ALGORITHMS = {"A2C", "DDPG", "DDQN", "DQN", "PPO", "SAC", "TD3"}
OFF_POLICY = {"DDPG", "DQN", "SAC", "TD3"}


class TensorVecEnvOfFunctions(TensorVecEnv):
    """`TensorVecEnv` with the constructor of `DummyVecEnv`, for environments of any kind."""

    def __init__(self, env_fns: list[Callable[[], Any]]) -> None:
        super().__init__(SyncVectorEnv(env_fns, autoreset_mode=AutoresetMode.SAME_STEP))


class TensorBufferOfEntries(TensorReplayBuffer):
    """`TensorReplayBuffer` in the place of SB3's for dictionaries, which tests tell apart."""


class TensorBufferOfWindows(TensorReplayBuffer):
    """`TensorReplayBuffer` with the defaults of SB3's `NStepReplayBuffer`."""

    def __init__(self, *arguments: Any, n_steps: int = 3, gamma: float = 0.99, **more: Any) -> None:
        super().__init__(*arguments, n_steps=n_steps, gamma=gamma, **more)


BUFFERS = {
    "ReplayBuffer": TensorReplayBuffer,
    "DictReplayBuffer": TensorBufferOfEntries,
    "NStepReplayBuffer": TensorBufferOfWindows,
}
SB3S_BUFFERS = {name: getattr(buffers, name) for name in BUFFERS}


def _put(replacements: Mapping[str, type], *modules: Any) -> None:
    for module in modules:
        for name, replacement in replacements.items():
            setattr(module, name, replacement)


PARTS: dict[str, tuple[str, Callable[[], None], set[str]]] = {
    "ddqn": (
        "DDQN in the place of DQN",
        lambda: _put({"DQN": DDQN}, stable_baselines3),
        {"DDQN", "DQN"},
    ),
    "buffer": (
        "TensorReplayBuffer in the place of ReplayBuffer and those derived from it",
        lambda: _put(BUFFERS, buffers, off_policy_algorithm),
        {*OFF_POLICY, *BUFFERS, *(each.__name__ for each in BUFFERS.values())},
    ),
    "vec_env": (
        "TensorVecEnv in the place of DummyVecEnv",
        lambda: _put({"DummyVecEnv": TensorVecEnvOfFunctions}, vec_env, env_util),
        {"TensorVecEnvOfFunctions", "DummyVecEnv"},
    ),
}
"""What is replaced by what, and the names by which a test uses it."""


def listed(text: str) -> set[str]:
    """The tests in the tables of a page: ``file.py::name`` or ``file.py::name[parameters]``."""
    return set(re.findall(r"^\| `(test_\w+\.py::[^`]+)`", text, re.MULTILINE))


def is_listed(test: str, names: set[str]) -> bool:
    """Whether a test, or its function for all parameters, is among the names."""
    return bool({test, test.split("[")[0]} & names)


def uses(item: Any, names: set[str]) -> bool:
    """Whether a test uses one of these classes: by its parameters, else by its source."""
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters else ()
    classes = {each.__name__ for each in values if inspect.isclass(each)}
    asked = classes & (ALGORITHMS | names)
    return bool(asked & names if asked else names & {*re.findall(r"\w+", _source(item))})


def _source(item: Any) -> str:
    return inspect.getsource(item.function)


# The hooks of pytest, which loads this file as a plugin of each run.


def pytest_configure(config: Any) -> None:
    """Put our class in the place of SB3's before the tests are imported."""
    PARTS[os.environ[PART]][1]()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests that use the class; those of vector environments by their files."""
    part = os.environ[PART]
    _put(SB3S_BUFFERS, buffers)  # the classes of SB3 that derive from them look there, too
    items[:] = [
        each
        for each in items
        if uses(each, PARTS[part][2]) and (part != "vec_env" or each.path.match("test_vec_*.py"))
    ]


def pytest_runtest_logreport(report: Any) -> None:
    """Note how each test ended, line by line."""
    if report.when == "call" or report.outcome != "passed":
        name = report.nodeid.split("/")[-1]
        with open(os.environ[RESULTS], "a", encoding="utf-8") as file:
            file.write(json.dumps([name, report.outcome]) + "\n")


def run_part(part: str, tests: Path, options: list[str]) -> int:
    """Run one part and print its result; the number of failures that the page does not list."""
    names = listed(LISTED.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        own = {PART: part, RESULTS: str(results), "PYTHONPATH": paths}
        configuration = tests.parent / "pyproject.toml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.peers"]
        command += ["-p", "no:cacheprovider", "-c", str(configuration), "--tb=short"]
        command += ["--continue-on-collection-errors", *options, str(tests)]
        subprocess.run(command, cwd=folder, env={**os.environ, **own}, check=False)
        ended = dict(json.loads(line) for line in results.read_text().splitlines())
    failed = sorted(name for name, outcome in ended.items() if outcome == "failed")
    passed = sum(outcome == "passed" for outcome in ended.values())
    unknown = [name for name in failed if not is_listed(name, names)]
    print(f"\n{PARTS[part][0]}: {passed} of {passed + len(failed)} pass,", end=" ")
    print(f"{len(failed) - len(unknown)} fail for a reason in {LISTED.relative_to(ROOT)}")
    for name in unknown:
        print(f"  not listed: {name}")
    for name in sorted(name for name in ended if ended[name] == "passed" and name in names):
        print(f"  listed, but passes: {name}")
    return len(unknown) + (not ended)


def main(argv: list[str] | None = None) -> int:
    """Run the parts; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts")
    parser.add_argument("options", nargs="*", help="options of pytest, after --")
    args = parser.parse_args(argv)
    given, version = os.environ.get("SB3_SOURCE", ""), stable_baselines3.__version__
    source = Path(given)
    file = source / "stable_baselines3" / "version.txt"
    found = file.read_text().strip() if given and file.is_file() else "none"
    if found != version or not (source / "tests").is_dir():
        print(
            f"SB3_SOURCE: got {given!r} (version {found}); expected the folder of the source of"
            f" stable-baselines3 {version}. To get it: python -m pip download --no-deps"
            f" --no-binary :all: stable-baselines3=={version}, and unpack the archive",
            file=sys.stderr,
        )
        return 2
    unknown = sum(run_part(part, source.resolve() / "tests", args.options) for part in args.only)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
