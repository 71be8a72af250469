"""No text of a file imports, in any field, in any form: one generated test over all files.

Every value of a shipped or saved file, and every field that its schema allows, gets the name of an
own module in turn: bare, called, nested, in mixtures. No program or command that reads the file,
and builds what it describes, imports the module.
"""

import copy
import json
import shutil
import sys
import typing
from contextlib import nullcontext, suppress
from functools import reduce
from itertools import cycle, islice
from operator import getitem
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel
from safetensors import safe_open
from safetensors.torch import save_file

import resgym
from resgym.game.spec import GameSpec
from resgym.polynomials.starts import read_starts
from resgym.scoreboard import check, read_rows
from resgym.trust import command_words, import_modules
from sb3_ext.attack.config import AttackConfig
from sb3_ext.checkpoints.models import policy_bytes
from sb3_ext.config.sections import find_config
from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.teach.positions import TeachConfig
from sb3_ext.train.config_files import ZooKeys
from sb3_ext.train.loading import load_player
from sb3_ext.train.train import main as train_main
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.config import TrainerConfig
from tests.sb3_ext.checkpoints.test_checkpoint import rewrite_manifest
from tests.sb3_ext.config.test_damaged_files import reader_of
from tests.sb3_ext.helpers import SMALL_RUN, player_model
from tests.sb3_ext.two_player.helpers import tiny

FORMS = (
    "evil:Code",
    "evil:Code(x=1)",
    "evil:Code(x='a/b.zip')",
    "safe(agents='evil:Code')",
    "safe(agents=['random', 'evil:Code(x=1)'])",
    "safe(agents={'evil:Code': 1})",
    "safe(agents=r'evil:Code(x=1)')",
    "safe(agents='\\x65vil:Code')",
    {"evil:Code": 0.5, "random": 0.5},
    {"safe(agents='evil:Code(x=1)')": 0.5, "random": 0.5},
    ["random", "evil:Code(x=1)"],
    [{"evil.Code": {"x": 1}}],
    "evil.Code",
    "evil:resgym/HironakaHost-v0",
    "evil:Code but not quite",
    "{'evil:Code': 0.5, 'random': 0.5}",
    "['random', 'evil:Code(x=1)']",
    "[{'evil.Code': {'x': 1}}]",
)

SCHEMAS = {
    "attack/points5": AttackConfig,
    "teach/small": TeachConfig,
    "two_player/self_play": TrainerConfig,
    "two_player/ppo_host": TrainerConfig,
    "ddqn": ZooKeys,
    "play/full": ZooKeys,
    "ppo_mask": ZooKeys,
}


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A harmless module of one's own that makes a file when it is imported."""
    marker = tmp_path / "MARKER"
    (tmp_path / "evil.py").write_text(
        f"open({str(marker)!r}, 'w').close()\nclass Code:\n    def __init__(self, **k): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield marker
    sys.modules.pop("evil", None)


def places(data, path=()):
    """Where every value of plain data stands, those in lists too."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from places(value, (*path, number))


def fields(model, path=()):
    """Every field of a schema, those of its sections too."""
    for name, field in model.model_fields.items():
        yield (*path, name)
        for kind in (field.annotation, *typing.get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from fields(kind, (*path, name))


def changed(data, path, value):
    """A copy with one other value, or one value more."""
    data = copy.deepcopy(data)
    inner = data
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
        if not isinstance(inner, (dict, list)):
            return None
    if isinstance(inner, list) and not isinstance(path[-1], int):
        return None
    inner[path[-1]] = value
    return data


def hostile(data, more=()):
    """Each place of a file with one form; the forms take turns."""
    forms = cycle(FORMS)
    for path in dict.fromkeys((*places(data), *more)):
        if path and (document := changed(data, path, next(forms))) is not None:
            yield document


def try_all(documents, read, marker, share):
    """Reads the documents, in turn as a program and as a command that was given other words.

    At least this share of them is refused; words without an effect may stand in a name.
    """
    refused = total = 0
    for document in documents:
        words = ("--games", "5", "evil:Coder", "x/evil:Code")
        with command_words(words) if total % 2 else nullcontext():
            try:
                read(document)
            except ValueError:  # pickles, too, are refused by one
                refused += 1
        total += 1
        assert "evil" not in sys.modules, document
        assert not marker.exists(), document
    assert total > 10
    assert refused >= share * total


@pytest.mark.parametrize("name", SCHEMAS)
def test_configurations(name, evil, tmp_path):
    data = yaml.safe_load(find_config(name, shipped=True).read_text(encoding="utf-8"))
    more = [*fields(SCHEMAS[name])]
    if SCHEMAS[name] is ZooKeys:
        section = "resgym/HironakaHost-v0"
        data = {section: data[section]}  # the others are read alike
        more = [(section, *path) for path in more]
        more += [(section, "env_kwargs", key) for key in ("opponent", "starts", "reward")]
    file = tmp_path / f"{name.rpartition('/')[2]}.yml"

    def read(document):
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        reader_of(name)(file)

    try_all(hostile(data, more), read, evil, 0.6)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders that this project writes: a run of `train`, a checkpoint of two players, a model."""
    root = tmp_path_factory.mktemp("saved")
    assert train_main([*SMALL_RUN, "-f", str(root), "-n", "96"]) == 0
    trainer = HostAgentTrainer(tiny())
    trainer.train(2)
    trainer.save(root / "two")
    (root / "model.safetensors").write_bytes(policy_bytes(player_model("host").policy, {}))
    return root


def test_a_run_of_train(saved, evil, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(next((saved / "ddqn").iterdir()), run)
    path = run / "config.yml"
    data = yaml.safe_load(path.read_text())
    keys = ("env_kwargs opponent", "callback", "policy_kwargs activation_fn")
    more = [("hyperparameters", *each.split()) for each in keys]

    def read(document):
        path.write_text(yaml.safe_dump(document))
        load_player(next(run.glob("*.zip")), "host")

    try_all(hostile(data, more), read, evil, 0.5)
    for document in islice(hostile(data, more), 0, None, 7):
        path.write_text(yaml.safe_dump(document))
        with suppress(SystemExit):
            train_main(["--resume", str(run), "-n", "8"])
        assert not evil.exists()


def test_a_checkpoint_of_two_players(saved, evil, tmp_path):
    folder = tmp_path / "two"
    shutil.copytree(saved / "two", folder)
    newest = (list_checkpoints(folder) or [folder])[-1]
    file = newest / "state.json"
    data = json.loads(file.read_text())
    texts = [path for path in places(data) if path and isinstance(reduce(getitem, path, data), str)]
    few = texts[:: max(1, len(texts) // 60)]
    forms = cycle(form for form in FORMS if isinstance(form, str))

    def read(document):
        file.write_text(json.dumps(document))
        rewrite_manifest(newest)
        with suppress(ValueError):
            load_player(folder, "host")
        HostAgentTrainer.load(folder)

    try_all((changed(data, path, next(forms)) for path in few), read, evil, 0)


def test_a_model_and_its_card(saved, evil, tmp_path):
    source = saved / "model.safetensors"
    target = tmp_path / "model.safetensors"
    with safe_open(source, "pt") as file:
        about = json.loads(file.metadata()["policy"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def read(document):
        save_file(tensors, target, {"policy": json.dumps(document)})
        load_player(target, "host")

    try_all(hostile(about, [("arguments", "activation_fn")]), read, evil, 0.5)


def test_a_scoreboard(evil, tmp_path):
    board = Path(__file__).parents[3] / "docs/scoreboard.json"
    row, *_ = json.loads(board.read_text(encoding="utf-8"))
    file = tmp_path / "s.json"

    def read(document):
        file.write_text(json.dumps([document]))
        for each in read_rows(file):
            check(each)

    try_all(({**row, "player": str(form)} for form in FORMS), read, evil, 1)


def test_starts_and_polynomials(evil, tmp_path):
    file = tmp_path / "starts.txt"

    def read(text):
        file.write_text(f"x^2+y^3\n{text}\n")
        with suppress(ValueError):
            resgym.parse(text)
        read_starts(file, GameSpec(2, 20))

    try_all(map(str, FORMS), read, evil, 1)


def test_a_module_that_was_named_lends_only_its_own(evil, tmp_path, monkeypatch):
    """`--import MODULE` lets files name what the module defines, not what it has imported."""
    (tmp_path / "mine.py").write_text(
        "from subprocess import getoutput\nimport os\n"
        "class Host:\n    role = 'host'\n"
        "    def act(self, state, coords, rng):\n"
        "        return state.count * 0\n"
    )
    monkeypatch.setattr("resgym.trust._modules", {})
    with command_words():
        with pytest.raises(ValueError, match="imports code; expected"):
            resgym.make_host("mine:Host")
        import_modules(["mine"])
        assert resgym.make_host("mine:Host").role == "host"
        for text in ("mine:getoutput(cmd='touch x')", "mine:os", "mine:__loader__"):
            with pytest.raises((ValueError, TypeError)):
                resgym.make_host(text)
    assert not (tmp_path / "x").exists()
    sys.modules.pop("mine")


def test_a_text_of_the_command_line_may_import(evil):
    for word in ("evil:Code", "opponent: 'evil:Code(x=1)'", "safe(agents='evil:Code')"):
        with command_words([word]), pytest.raises((TypeError, ValueError)) as caught:
            resgym.make_host("evil:Code")
        assert "imports code" not in str(caught.value)
        sys.modules.pop("evil", None)
    for word in ("evil:Coder", "devil:Code", "runs/evil:Code/model.zip", "evil:Code.zip", "evil"):
        with command_words([word]), pytest.raises(ValueError, match="imports code"):
            resgym.make_host("evil:Code")
