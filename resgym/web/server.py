"""The server: routes, limits, headers. Computations run in other processes, see `workers`."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from resgym.players.registry import LAZY
from resgym.trust import imported_modules
from resgym.web import answers
from resgym.web.questions import read_question
from resgym.web.workers import RefusedError, Workers, outcome

PAGE = Path(__file__).with_name("page")

MAX_QUERY = 8_000
"""Most characters of a request's encoded fields."""

MOVE_LIMIT, SEARCH_LIMIT = 10.0, 12.0
"""Seconds after which a process is ended; a hint's search stops by itself before that."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


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
        return Response(text, media_type=form, headers={**HEADERS, "Cache-Control": "no-store"})

    async def _answer(self, request: Request) -> Any:
        name: str = request.path_params["name"]
        if len(request.url.query) > MAX_QUERY:
            raise RefusedError(f"the request must have at most {MAX_QUERY} characters", 414)
        if name == "options":
            return await self._moves.ask(answers.options, self._models)
        if name not in answers.ANSWERS:
            raise RefusedError("there is no such page", 404)
        question = outcome(read_question, request.query_params)
        # Players that search must not delay people who play against others.
        player = (LAZY[role].get(question.opponent, "") for role in LAZY)
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
        http="h11",
        h11_max_incomplete_event_size=4 * MAX_QUERY,
        limit_concurrency=600,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
    shown = "localhost" if host == "::1" else f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{port}/")
    uvicorn.Server(config).run(sockets=[listening])
