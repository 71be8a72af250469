"""The server: routes, limits, headers. Computations run in other processes, see `workers`."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import uvicorn
import uvicorn.server
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from resgym.app import answers
from resgym.app.questions import read_question
from resgym.app.workers import RefusedError, Workers, outcome
from resgym.players.registry import PLAYERS
from resgym.trust import imported_modules

PAGE = Path(__file__).with_name("page")

MAX_QUERY = 8_000
"""Most characters of a request's encoded fields."""

MOVE_LIMIT, SEARCH_LIMIT = 10.0, 12.0
"""Seconds after which a process is ended; a hint's search stops by itself before that."""

HEADER_SECONDS, ANSWER_SECONDS = 5.0, 60.0
"""Seconds in which a request has to arrive, and in which its answer has to be made and read."""

WAITING_FROM_ONE, WAITING_IN_ALL = 40, 300
"""Most connections without a request, from one address and in all; one more closes the oldest."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Connection(H11Protocol):
    """A connection that is closed if its client is slow, and if it waits while many others come."""

    def connection_made(self, transport: Any) -> None:
        """Close the connection that has waited longest where too many wait."""
        super().connection_made(transport)
        self.made = self.loop.time()
        self._close_after(HEADER_SECONDS)
        known: Collection[Any] = self.connections
        waiting = [each for each in known if not each.cycle or each.cycle.response_complete]
        near = [each for each in waiting if each.address == self.address]
        for some, most in ((near, WAITING_FROM_ONE), (waiting, WAITING_IN_ALL)):
            if len(some) > most:
                oldest = min(some, key=attrgetter("made"))
                self.connections.discard(oldest)
                oldest.transport.abort()

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        """Read on; in the base class every byte would prolong the time."""
        self.conn.receive_data(data)
        self.handle_events()

    def handle_events(self) -> None:
        """Limit the time of an answer from its request on."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._close_after(ANSWER_SECONDS)

    def _close_after(self, seconds: float) -> None:
        self._unset_keepalive_if_required()
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(seconds, handler)

    def timeout_keep_alive_handler(self) -> None:
        """End it at once, whatever has not been read yet."""
        self.transport.abort()


class Site:
    """The pages and answers of one server.

    Args:
        models: folder of the models that can be played; None for none.
        workers: processes for moves, plus half as many for searches and trees.
    """

    def __init__(self, models: Path | None, workers: int) -> None:
        self._models, modules = models, imported_modules()
        self._moves = Workers(workers, MOVE_LIMIT, 400, answers.prepare_moves, modules)
        searching = max(1, workers // 2)
        self._searches = Workers(searching, SEARCH_LIMIT, 8, answers.prepare_search, modules)

    def app(self, hosts: list[str]) -> Starlette:
        """Return the ASGI application, for browsers that ask for one of these hosts."""
        routes = [
            Route("/", lambda _: FileResponse(PAGE / "index.html", headers=HEADERS)),
            Route("/api/{name}", self._respond),
            Mount("/page", StaticFiles(directory=PAGE)),
        ]
        guard = Middleware(TrustedHostMiddleware, allowed_hosts=hosts)
        return Starlette(routes=routes, middleware=[guard], lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        self._moves.open()
        self._searches.open()
        try:
            yield
        finally:
            self._moves.close()
            self._searches.close()

    async def _respond(self, request: Request) -> Response:
        """Return a refusal as one line of JSON under ``error``."""
        try:
            text = await self._answer(request)
        except RefusedError as error:
            return JSONResponse({"error": error.text}, error.status, headers=HEADERS)
        form = "image/svg+xml" if text.startswith("<") else "application/json"
        return Response(text, media_type=form, headers=HEADERS | {"Cache-Control": "no-store"})

    async def _answer(self, request: Request) -> Any:
        name = request.path_params["name"]
        if len(request.url.query) > MAX_QUERY:
            raise RefusedError(f"the request must have at most {MAX_QUERY} characters", 414)
        if name == "options":
            return await self._moves.ask(answers.options, self._models)
        if name not in answers.ANSWERS:
            raise RefusedError("there is no such page", 404)
        question = outcome(read_question, request.query_params)
        # Players that search must not delay people who play against others.
        player = (str(named.get(question.opponent)) for named in PLAYERS.values())
        searching = name != "game" or any(each.startswith("resgym.solver") for each in player)
        workers = self._searches if searching else self._moves
        return await workers.ask(answers.answer, name, question, self._models)


def serve(
    host: str = "127.0.0.1",
    port: int = 8000,
    models: Path | None = None,
    workers: int | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page until interrupted.

    Args:
        host: name or address to listen on.
        port: port to listen on, 0 for any free one.
        models: folder of the models that can be played.
        workers: processes for moves, by default one per core, at most 4; plus half as many for
            search.
        ready: called with the page's address when it answers requests.

    Raises:
        OSError: the address cannot be used.
    """
    workers = min(4, os.cpu_count() or 1) if workers is None else workers
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=512)
    # Answers are written in two parts; the second must not wait for the first one's receipt.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = listening.getsockname()[1]
    # A foreign name that points here must not read what is for this machine only.
    local = host in ("127.0.0.1", "localhost", "::1")
    config = uvicorn.Config(
        Site(models, workers).app(["127.0.0.1", "localhost"] if local else ["*"]),
        http=Connection,
        h11_max_incomplete_event_size=4 * MAX_QUERY,
        limit_concurrency=600,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
    if getattr(signal, "SIGHUP", None) and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        # As SIGTERM does, it has to end the processes, too.
        handling: Any = uvicorn.server
        handling.HANDLED_SIGNALS += (signal.SIGHUP,)
    shown = "localhost" if host == "::1" else f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{port}/")
    uvicorn.Server(config).run(sockets=[listening])
