"""A player that reads positions as text and answers in text, through a function of the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import Role, check_integer
from resgym.game.state import GameState
from resgym.players import resolve_player
from resgym.players.base import check_role, given_sets
from resgym.text.wording import AnswerError, Chat, action_of, chat_of, read_answer

Ask = Callable[[list[Chat]], Sequence[str]]


class TextPlayer:
    """Plays what a language model says, or whoever else reads text and answers in text.

    Each unfinished game is a chat of its own with the rules and the position, see `chat_of`; what
    was played before does not matter. All games of a batch are asked about at once. A reply that
    cannot be read or is illegal is answered by what is wrong with it, and those games are asked
    about again, up to ``retries`` times; then ``on_unreadable`` decides.

    Whether the same position is answered alike every time is up to ``ask``. Measures of the worst
    case and `check_player` want that, rho does not.

    Args:
        role: ``host`` or ``agent``.
        ask: from N chats, of which it must not change the messages, to N replies.
        retries: how often it is asked again about a position, 0 or more.
        on_unreadable: ``first`` plays the first legal action, ``error`` raises a ValueError, and
            any player, of what `resolve_player` takes, plays in these positions.
        instructions: the system message; None: the rules, as `chat_of` writes them.
        name: for tables.

    Attributes:
        counts: since the beginning: ``decisions`` to be made, ``replies`` got, of which
            ``unreadable`` and ``illegal``, and ``given_up``, decisions left to ``on_unreadable``.
    """

    rules: ClassVar[tuple[str, ...]] = ("basic",)

    def __init__(
        self,
        role: Role,
        ask: Ask,
        *,
        retries: int = 2,
        on_unreadable: Any = "first",
        instructions: str | None = None,
        name: str = "text",
    ) -> None:
        self.role: Role = check_role(role)
        if not callable(ask):
            raise TypeError(f"ask must be a function of a list of chats, got {ask!r}")
        self.ask = ask
        self.retries = check_integer("retries", retries, 0)
        self.on_unreadable = on_unreadable
        if on_unreadable not in ("first", "error"):
            self.on_unreadable = resolve_player(on_unreadable, role)
        self.instructions, self.name = instructions, name
        self.counts = Counter(decisions=0, replies=0, unreadable=0, illegal=0, given_up=0)

    def __repr__(self) -> str:
        return f"TextPlayer({self.name}, role={self.role!r})"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; raises what ``ask`` raises.

        Raises:
            TypeError, ValueError: ``ask`` did not return a text for each chat, or with
                ``on_unreadable="error"`` an answer could not be read.
        """
        dimension, legal = state.points.shape[2], torch.zeros_like(state.count)
        if self.role == "agent":
            legal = given_sets(coords).to(torch.uint8).argmax(1)
        answers: list[int] = legal.tolist()
        sets: dict[int, list[int]] = {}
        chats: dict[int, Chat] = {}
        for row, points in enumerate(state.point_lists()):
            if len(points) > 1:
                if coords is not None and self.role == "agent":
                    sets[row] = coords[row].nonzero()[:, 0].tolist()
                chats[row] = chat_of(self.role, points, sets.get(row), self.instructions)
        self.counts["decisions"] += len(chats)
        wrong: dict[int, AnswerError] = {}
        for _ in range(1 + self.retries):
            open_rows, wrong = list(wrong or chats), {}
            if not open_rows:
                break
            replies = self._replies([chats[row] for row in open_rows])
            for row, reply in zip(open_rows, replies, strict=True):
                try:
                    axes = read_answer(reply, self.role, dimension, sets.get(row))
                    answers[row] = action_of(axes, self.role, dimension)
                except AnswerError as error:
                    self.counts[error.kind] += 1
                    wrong[row] = error
                    complaint = f"That is not valid: {error}. Answer again."
                    chats[row] += [
                        {"role": "assistant", "content": reply},
                        {"role": "user", "content": complaint},
                    ]
            if not wrong:
                break
        self.counts["given_up"] += len(wrong)
        answer = torch.tensor(answers, dtype=torch.int64, device=state.device)
        return self._settled(answer, wrong, state, coords, rng) if wrong else answer

    def _replies(self, chats: list[Chat]) -> list[str]:
        # Lists of their own, so that what is added later does not change what was handed out.
        replies = self.ask([list(chat) for chat in chats])
        if isinstance(replies, str) or not isinstance(replies, Sequence):
            raise TypeError(f"ask must return a list of texts, got {type(replies).__name__}")
        if len(replies) != len(chats):
            raise ValueError(f"ask must return {len(chats)} texts, got {len(replies)}")
        for reply in replies:
            if not isinstance(reply, str):
                raise TypeError(f"ask must return texts, got one {type(reply).__name__}")
        self.counts["replies"] += len(replies)
        return list(replies)

    def _settled(
        self,
        answer: Tensor,
        wrong: dict[int, AnswerError],
        state: GameState,
        coords: Tensor | None,
        rng: RowRandom,
    ) -> Tensor:
        """The answers int64 [N] with those that nobody could read taken from elsewhere."""
        if self.on_unreadable == "error":
            row, error = next(iter(wrong.items()))
            asked = 1 + self.retries
            raise ValueError(f"{self.role} {self.name}: row {row}, asked {asked} times: {error}")
        if self.on_unreadable != "first":
            index = torch.tensor(list(wrong), device=state.device)
            sets = None if coords is None else coords[index]
            answer[index] = self.on_unreadable.act(state.select(index), sets, rng.select(index))
        return answer
