"""Files are read through `resgym.files`, which bounds them; other readers are listed here."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
READERS = {
    *("open", "os.open", "load_file", "safe_open", "zipfile.ZipFile", "ZipFile"),
    *("json.load", "yaml.safe_load", "yaml.load", "np.load", "torch.load", "pickle.load"),
}
METHODS = {"open", "read_text", "read_bytes"}
KNOWN = {
    "resgym/certificate_check.py": "a checker of certificates that needs no other module",
    "resgym/game/devices.py": "tables of the system",
    "resgym/kernels/cpu/compilation.py": "source files of this package",
    "resgym/command.py": "the null device",
    "resgym/benchmark/solved.py": "checks the bytes of an archive that `opened` has checked",
    "resgym/app/server.py": "opens workers, not files",
    "sb3_ext/adapter/seam.py": "a file that this process writes",
    "sb3_ext/checkpoints/models.py": "inside `opened`",
    "sb3_ext/runs/checkpoint.py": "after `check_content`",
    "sb3_ext/config/effects.py": "a text that `read_text` has read",
    "sb3_ext/runs/driver.py": "a text that was just written",
    "sb3_ext/runs/files.py": "`check_content` itself; files of a run that are appended to",
    "sb3_ext/train/loading.py": "archives whose members are bounded there",
}


def reads(file):
    """Whether a file calls a reader by name."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in READERS or (
                isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            ):
                yield f"{name}, line {node.lineno}"


def test_only_known_modules_read_files_by_themselves():
    found = {}
    for package in ("resgym", "sb3_ext"):
        for file in (ROOT / package).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            if name != "resgym/files.py" and (calls := [*reads(file)]):
                found[name] = calls
    assert {name: calls for name, calls in found.items() if name not in KNOWN} == {}
    assert found.keys() == KNOWN.keys()
