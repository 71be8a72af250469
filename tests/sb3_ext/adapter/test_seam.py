"""Private names of stable-baselines3 stand in one module."""

import ast
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[3]
SEAM = "seam.py"
PRIVATE = {
    *("_create_aliases", "_current_progress_remaining", "_episode_num", "_init_callback"),
    *("_last_episode_starts", "_last_obs", "_last_original_obs", "_n_calls", "_n_updates"),
    *("_num_timesteps_at_start", "_setup_learn", "_total_timesteps", "_update_learning_rate"),
    *("_vec_normalize_env",),
}


def uses(tree):
    """Private names that are asked of another object than oneself, or written as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            owner = node.value
            parent = isinstance(owner, ast.Call) and ast.unparse(owner.func) == "super"
            if not parent and not (isinstance(owner, ast.Name) and owner.id == "self"):
                yield node.attr
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:
            yield str(node.value)


def test_private_names_stand_in_the_seam():
    found = {}
    for package in ("resgym", "sb3_ext", "benchmarks", "examples"):
        for path in (PACKAGES / package).rglob("*.py"):
            if path.name != SEAM:
                names = set(uses(ast.parse(path.read_text(encoding="utf-8"))))
                found |= {path.name: names} if names else {}
    assert found == {}
