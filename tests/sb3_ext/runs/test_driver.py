"""One small job through every way in which a driver can begin, end and go on."""

import os
import signal
from unittest.mock import patch

import pytest
import torch
import yaml

from sb3_ext.config.sections import ConfigFile, PositiveCount
from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.runs.driver import Job, Used, drive


class CountConfig(ConfigFile):
    updates: PositiveCount
    seed: int = 0


class Count(Job[CountConfig]):
    """Adds numbers; `signals` are sent to the process after so many updates."""

    name = "count"
    about = "Counts."
    Config = CountConfig
    metrics = ("sum",)
    may_change = frozenset({"updates"})
    every = 3
    signals: dict[int, int] = {}  # noqa: RUF012

    def __init__(self, config, run):
        super().__init__(config, run)
        self.done = 0
        self.sum = 0
        self.began = 0

    @classmethod
    def read(cls, given):
        return CountConfig.read({"updates": 10}, given.settings)

    @property
    def state(self):
        return {"count": {"done": self.done, "sum": self.sum}}

    @state.setter
    def state(self, parts):
        self.done = parts["count"]["done"]
        self.sum = parts["count"]["sum"]
        self.began = self.done

    def run(self, pulse):
        while self.done < self.config.updates:
            self.done += 1
            self.sum += self.done
            if number := self.signals.get(self.done):
                os.kill(os.getpid(), number)
            if not pulse(Used(self.done), sum=float(self.sum)):
                return

    def report(self):
        return f"{self.began} to {self.done}: {self.sum}"


@pytest.fixture
def count(tmp_path, capsys, monkeypatch):
    def run(*more, signals=None):
        monkeypatch.setattr(Count, "signals", signals or {})
        code = drive(Count, ["--out", str(tmp_path / "out"), "--no-progress", *more])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    run.out = tmp_path / "out"
    return run


def kept(out):
    """The checkpoints in a folder, by the ends of their names."""
    return [path.name[-2:] for path in list_checkpoints(out / "checkpoints")]


def test_checkpoints_come_after_every_period(count, monkeypatch):
    monkeypatch.setattr(Count, "keep", 9)
    assert count()[0] == 0
    assert kept(count.out) == ["10", "09", "06", "03"]
    with patch("sb3_ext.runs.driver.save_checkpoint", side_effect=OSError) as save:
        count("--set", "updates=20")
    assert save.call_count == 4  # after 13, 16, 19 and at the end


def test_a_run_gives_back_the_number_of_threads(count):
    before = torch.get_num_threads()
    assert count("--threads", str(before + 1))[0] == 0
    assert torch.get_num_threads() == before


def test_a_run_to_its_end_and_again(count):
    assert count() == (0, "0 to 10: 55\n")
    assert count() == (0, "10 to 10: 55\n")
    assert count("--set", "updates=12") == (0, "10 to 12: 78\n")
    assert kept(count.out) == ["12", "10"]
    assert len((count.out / "runs.jsonl").read_text().splitlines()) == 3
    assert yaml.safe_load((count.out / "config.yml").read_text())["updates"] == 12


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_a_checkpoint(count, number):
    code, text = count(signals={5: number})
    assert code == 128 + number
    assert "0 to 5: 15" in text
    assert number.name in text
    assert count() == (0, "5 to 10: 55\n")


def test_a_hang_up_that_nohup_ignores_ends_nothing(count):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert count(signals={5: signal.SIGHUP}) == (0, "0 to 10: 55\n")
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_checkpoint_is_written_when_asked_for(count):
    for number, before in ((4, "04"), (2, "02")):  # else 3
        out = count.out / str(number)
        count("--set", "updates=5", "--out", str(out), signals={number: signal.SIGUSR1})
        assert kept(out) == ["05", before]


def test_what_a_kill_leaves_goes_on(count, monkeypatch):
    class Killed(BaseException):
        pass

    def die(self):
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(Count, "report", die)
        with pytest.raises(Killed):
            count("--stop", "max_updates=7")
    left = count.out / "a.json.0123456789abcdef.tmp"
    own = count.out / "own.json.tmp"
    left.touch()
    own.touch()
    assert count() == (0, "7 to 10: 55\n")
    assert not left.exists()
    assert own.exists()


def test_what_is_refused_is_one_line_and_leaves_nothing(count, tmp_path):
    for more, fault in (
        (("--set", "update=3"), "unknown key 'update'"),
        (("--stop", "max_episodes=3"), "unknown rule 'max_episodes'"),
        (("--stop", "until={condition: bound, field: rho, lower: 1}"), "unknown field 'rho'"),
    ):
        code, text = count(*more)
        assert (code, text.count("\n")) == (2, 1)
        assert fault in text
    assert not count.out.exists()
    assert count("--dry-run") == (0, "updates: 10\nseed: 0\n")
    assert not count.out.exists()
    count()
    code, text = count("--set", "seed=1")
    assert code == 2
    assert "another seed: got 1; expected 0" in text
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").touch()
    assert "contains other files" in count("--out", str(other))[1]


@pytest.mark.parametrize("trained", [False, True])
def test_what_a_run_refuses_before_it_trains_leaves_nothing(count, monkeypatch, trained):
    def run(self, pulse):
        if trained:
            pulse(Used(1))
        raise ValueError("callback: does not fit")

    monkeypatch.setattr(Count, "run", run)
    monkeypatch.setattr(Count, "resumes", True)
    assert count() == (2, "count: callback: does not fit\n")
    assert count.out.exists() == trained
