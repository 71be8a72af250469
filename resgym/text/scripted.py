"""A player of this package in place of a language model: it reads the messages and replies in text.

With it everything around a model can be tried without one.
"""

from __future__ import annotations

from zlib import crc32

import torch

from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import state_from_points
from resgym.players import ask_player, resolve_player
from resgym.text.wording import Chat, axes_of, read_position, write_answer


def answers_of(chats: list[Chat], *, host: str = "zeillinger", agent: str = "random") -> list[str]:
    """Replies to chats, as players of these names play; see `resgym.text.TextPlayer`.

    Whose turn it is, is read from the first user message; random numbers depend on the position
    alone, so that it is answered alike every time.
    """
    texts = [chat[1]["content"] for chat in chats]
    positions = [read_position(text) for text in texts]
    kinds = [(bool(named), len(points[0])) for points, named in positions]
    replies = [""] * len(chats)
    for kind in set(kinds):
        (is_agent, dimension), rows = kind, [row for row, own in enumerate(kinds) if own == kind]
        role: Role = "agent" if is_agent else "host"
        points = [positions[row][0] for row in rows]
        spec = GameSpec(dimension, max(20, *map(len, points)))
        sets = [[axis in positions[row][1] for axis in range(dimension)] for row in rows]
        seeds = [crc32(texts[row].encode()) for row in rows]
        actions = ask_player(
            resolve_player(agent if is_agent else host, role, spec),
            state_from_points(points, spec),
            torch.tensor(sets) if is_agent else None,
            RowRandom.for_episode(torch.tensor(seeds), torch.zeros(len(rows), dtype=torch.int64)),
        )
        for row, action in zip(rows, actions.tolist(), strict=True):
            replies[row] = write_answer(axes_of(action, role, dimension), role)
    return replies
