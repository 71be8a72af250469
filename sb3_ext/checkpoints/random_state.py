"""The state of the global random generators, for code that still draws from them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["global_random_state", "load_global_random_state"]


def global_random_state() -> dict[str, Any]:
    """The generators of Python, NumPy and PyTorch (CUDA's too, if it is in use)."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {
        "cuda": cuda,
        "numpy": {
            "cached": float(numpy_state["gauss"]),
            "has_cached": int(numpy_state["has_gauss"]),
            "position": int(numpy_state["state"]["pos"]),
            "words": torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
        },
        "python": {"gauss": gauss, "version": version, "words": torch.tensor(words)},
        "torch": torch.get_rng_state(),
    }


def load_global_random_state(state: Mapping[str, Any]) -> None:
    """Puts back what `global_random_state` gave; CUDA's where there are as many devices."""
    python, numpy_state = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    words = numpy_state["words"].numpy().astype(np.uint32)
    np.random.set_state(
        (
            "MT19937",
            words,
            numpy_state["position"],
            numpy_state["has_cached"],
            numpy_state["cached"],
        )
    )
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([each.cpu() for each in state["cuda"]])
