"""How long a move takes on a `resgym serve` that is running, while many play at once.

Each client keeps one connection and plays games of its own, from random starts, in all three
seats: it asks for the game after its move, chooses among what the answer offers, and asks again.

example:
  resgym serve --workers 2 &
  python -m benchmarks.serve --clients 100 --seconds 30             (nobody ever pauses)
  python -m benchmarks.serve --clients 100 --seconds 30 --pause 1   (a second of thought a move)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from resgym.cli import OneLineParser

OPPONENTS = {
    "host": ("random", "choose_last", "greedy_points"),
    "agent": ("random", "zeillinger", "spivakovsky"),
    "both": ("",),
}


def new_game(draw: random.Random) -> dict[str, str]:
    """A start of 3 to 10 monomials in three variables, a seat and an opponent."""
    monomials = [
        "*".join(f"{name}^{draw.randint(0, 12)}" for name in "xyz")
        for _ in range(draw.randint(3, 10))
    ]
    seat = draw.choice(list(OPPONENTS))
    fields = {"start": "+".join(monomials), "seat": seat, "seed": str(draw.randrange(10**6))}
    return fields | {"opponent": draw.choice(OPPONENTS[seat])}


def after_a_choice(game: dict[str, Any], draw: random.Random) -> dict[str, str]:
    """The fields of the next request: one of the choices that the answer offers."""
    chosen, moves = draw.choice(game["choices"])["code"], game["moves"]
    if game["to_play"] == "host":
        return {"moves": moves, "named": chosen}
    return {"moves": ",".join(filter(None, [moves, f"{game['named']}.{chosen}"])), "named": ""}


async def play(
    number: int, host: str, port: int, pause: float, until: float, found: list[float], said: Counter
) -> None:
    """One client: seconds of its moves are added to ``found``, what was refused to ``said``."""
    draw = random.Random(number)
    reader, writer = await asyncio.open_connection(host, port)
    await asyncio.sleep(draw.random() * pause)
    fields = new_game(draw)
    while time.perf_counter() < until:
        begin = time.perf_counter()
        path = f"/api/game?{urlencode({k: v for k, v in fields.items() if v})}"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
        status, game = head.split(None, 2)[1], json.loads(body)
        if status == "200":
            found.append(time.perf_counter() - begin)
        else:
            said[f"{status} {game['error']}"] += 1
        going = status == "200" and not game["ending"]
        fields = {**fields, **after_a_choice(game, draw)} if going else new_game(draw)
        await asyncio.sleep(pause)
    writer.close()


async def measure(args: argparse.Namespace) -> tuple[list[float], Counter]:
    """Seconds of every move, and the refusals counted by what they say."""
    found: list[float] = []
    said: Counter = Counter()
    until = time.perf_counter() + args.seconds
    clients = [
        play(number, args.host, args.port, args.pause, until, found, said)
        for number in range(args.clients)
    ]
    await asyncio.gather(*clients)
    return found, said


def main(arguments: Sequence[str] | None = None) -> None:
    parser = OneLineParser(
        prog="python -m benchmarks.serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="of the server (default %(default)s)")
    add("--port", type=int, default=8000, help="of the server (default %(default)s)")
    add("--clients", type=int, default=100, help="who play at once (default %(default)s)")
    add("--seconds", type=float, default=30.0, help="how long (default %(default)s)")
    add("--pause", type=float, default=0.0, help="seconds between moves (default %(default)s)")
    args = parser.parse_args(arguments)
    try:
        found, said = asyncio.run(measure(args))
    except (OSError, EOFError) as error:
        parser.error(f"port must be that of a server that runs, got {args.port}: {error}")
    for text, times in said.most_common():
        print(f"{times} refused: {text}")
    if not found:
        parser.error(f"seconds must be enough for a move, got {args.seconds:g}")
    middle, most = np.percentile(found, [50, 95]) * 1_000
    print(
        f"{len(found)} moves, {len(found) / args.seconds:.0f} a second, half within "
        f"{middle:.0f} ms, 95 % within {most:.0f} ms, all within {max(found) * 1_000:.0f} ms"
    )


if __name__ == "__main__":
    main()
