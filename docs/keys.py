"""Every key of a configuration, with its description in the code; `conf.py` shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sb3_ext.config.sections import Section
from sb3_ext.two_player.kinds import OffPolicyRole, OnPolicyRole, PPORole


def section_of(annotation: Any) -> type[Section] | None:
    """The section that a field holds, if it holds one."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, Section):
            return each
    return None


def key_rows(model: type[Section], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every dotted key of a section and its meaning; keys of some algorithms name those."""
    for name, field in model.model_fields.items():
        label, inner = prefix + name, section_of(field.annotation)
        if label == "roles":
            kinds = [dict(key_rows(each)) for each in (OffPolicyRole, OnPolicyRole, PPORole)]
            for key in dict.fromkeys(key for kind in kinds for key in kind):
                off, on, ppo = (key in kind for kind in kinds)
                algorithms = [
                    *["DDQN, DQN, QRDQN"] * off,
                    *["PPO, MaskablePPO"] * ppo,
                    *["A2C"] * on,
                ]
                only = "" if off and on else f" (only {', '.join(algorithms)})"
                meaning = next(kind[key] for kind in kinds if key in kind)
                yield f"roles.<role>.{key}", meaning + only
        elif inner is None:
            meaning = " ".join((field.description or "").split())
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            shown = meaning and default not in (None, [], {}) and "default" not in meaning
            yield label, f"{meaning} (default {json.dumps(default)})" if shown else meaning
        else:
            yield from key_rows(inner, f"{label}.")
