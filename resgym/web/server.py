"""The server: routes, limits, headers. What computes runs in other processes, see `workers`."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from resgym.players import agent_names, host_names
from resgym.players.registry import LAZY
from resgym.trust import imported_modules
from resgym.web import answers
from resgym.web.models import list_models
from resgym.web.questions import (
    MAX_CHARTS,
    MAX_MOVES,
    MAX_POINTS,
    MAX_TEXT,
    Question,
    read_question,
)
from resgym.web.workers import BusyError, RefusedError, StoppedError, Workers

PAGE = Path(__file__).with_name("page")

MAX_QUERY = 8_000
"""Characters of a request's fields, encoded."""

HINT_SECONDS, HINT_POSITIONS = 2.0, 200_000
MOVE_LIMIT, SEARCH_LIMIT = 10.0, 12.0
"""Seconds after which a process is ended; the search of a hint stops by itself before."""

LISTING_SECONDS = 2.0
"""How long a listing of a folder is kept."""

REQUEST_SECONDS = 10.0
"""A client may take so long to send a request."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
EXAMPLES = (
    *("E8", "D4", "A2", "x^13+x^6*y^4+y^9", "x^2+y^3+z^5", "x^4*y+y^5*z+x*z^6"),
    *("random(dim=3,points=6,max=9)", "x^3+y^4+z^5+w^6"),
)


def _prepare_search() -> None:
    """Loads the compiled search, so that a hint's seconds are the search's own."""
    with suppress(ImportError):
        from resgym.solver.search import Search, compiled

        search = Search("depth", 2, 2, compiled())
        search.decide(search.numbers(((0, 2), (2, 0)))[0], 0)


def _prepare_moves() -> None:
    answers.game_answer(Question("x^2+y^3+z^5"), {})


class Site:
    """The pages and answers of one server.

    Args:
        models: folder of the models that may be played; None for none.
        workers: processes for moves; half as many more search and grow trees.
    """

    def __init__(self, models: Path | None, workers: int) -> None:
        self._models = models
        modules = imported_modules()
        self._moves = Workers(workers, MOVE_LIMIT, 400, _prepare_moves, modules)
        searching = max(1, workers // 2)
        self._searches = Workers(searching, SEARCH_LIMIT, 8, _prepare_search, modules)
        self._listing: tuple[float, dict[str, Path]] = (-LISTING_SECONDS, {})

    def app(self, hosts: list[str]) -> Starlette:
        """The ASGI application, for browsers that ask for one of these hosts."""
        routes = [
            Route("/", lambda _: FileResponse(PAGE / "index.html", headers=HEADERS)),
            Route("/api/options", _answering(self._options)),
            Route("/api/game", _answering(self._game)),
            Route("/api/picture.svg", _answering(self._picture)),
            Route("/api/hint", _answering(self._hint)),
            Route("/api/tree", _answering(self._tree)),
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

    async def _known_models(self) -> dict[str, Path]:
        if time.monotonic() - self._listing[0] > LISTING_SECONDS:
            self._listing = time.monotonic(), await run_in_threadpool(list_models, self._models)
        return self._listing[1]

    async def _ask(
        self, question: Question, function: Callable[..., Any], *more: Any, search: bool = False
    ) -> Any:
        # Players that search keep nobody waiting who plays against others.
        player = question.opponent
        searching = any(LAZY[role].get(player, "").startswith("resgym.solver") for role in LAZY)
        workers = self._searches if search or searching else self._moves
        known = await self._known_models()
        wanted = {f"models/{name}": name for name in known}
        chosen = {
            wanted[p]: known[wanted[p]] for p in (question.opponent, question.host) if p in wanted
        }
        return await workers.ask(function, question, chosen, *more)

    async def _options(self, request: Request) -> Response:
        models = [f"models/{name}" for name in await self._known_models()]
        options = {
            "hosts": [*host_names(), *models],
            "agents": [*agent_names(), *models],
            "examples": EXAMPLES,
            "limits": {
                "text": MAX_TEXT,
                "moves": MAX_MOVES,
                "points": MAX_POINTS,
                "charts": MAX_CHARTS,
            },
            "hint_seconds": HINT_SECONDS,
        }
        return JSONResponse(options)

    async def _game(self, request: Request) -> Response:
        return _json(await self._ask(_question(request), answers.game_answer))

    async def _picture(self, request: Request) -> Response:
        return _svg(await self._ask(_question(request), answers.picture_answer))

    async def _hint(self, request: Request) -> Response:
        limits = HINT_SECONDS, HINT_POSITIONS
        return _json(await self._ask(_question(request), answers.hint_answer, *limits, search=True))

    async def _tree(self, request: Request) -> Response:
        question = _question(request)
        found = await self._ask(question, answers.tree_answer, search=True)
        return _json(found) if question.form == "json" else _svg(found)


def _question(request: Request) -> Question:
    return read_question(dict(request.query_params))


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _svg(text: str) -> Response:
    return Response(text, media_type="image/svg+xml")


def _answering(
    answer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """A route's function: every refusal is one line of JSON under ``error``."""

    async def respond(request: Request) -> Response:
        status, text = 400, ""
        if len(request.url.query) > MAX_QUERY:
            status, text = 414, f"the request must have at most {MAX_QUERY} characters"
        else:
            try:
                response = await answer(request)
                response.headers.update({**HEADERS, "Cache-Control": "no-store"})
                return response
            except (ValueError, TypeError, RefusedError) as error:
                text = " ".join(str(error).split())
            except BusyError as error:
                status, text = 503, str(error)
            except StoppedError as error:
                status, text = 504, str(error)
        return JSONResponse({"error": text}, status, headers=HEADERS)

    return respond


def _hasty_protocol() -> type:
    """Uvicorn's protocol for clients who send a request within `REQUEST_SECONDS`, or are cut off.

    uvicorn itself waits for the rest of a header without limit.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Hasty(H11Protocol):
        _limit: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            self._wait()
            super().data_received(data)
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) and self._limit is not None:
                self._limit.cancel()
                self._limit = None

        def connection_lost(self, exc: Exception | None) -> None:
            if self._limit is not None:
                self._limit.cancel()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._limit is None:
                self._limit = self.loop.call_later(REQUEST_SECONDS, self._cut)

        def _cut(self) -> None:
            self._limit = None
            self.transport.close()

    return Hasty


def serve(
    host: str = "127.0.0.1",
    port: int = 8000,
    models: Path | None = None,
    workers: int | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serves the page until it is interrupted.

    Args:
        host: the address to listen on; by default this machine alone can ask.
        port: 0 for any free one.
        models: folder of the models that may be played.
        workers: processes for moves; by default one a core, 4 at most; half as many more search.
        ready: called with the page's address once it can be asked for.

    Raises:
        OSError: the address cannot be listened on.
    """
    import socket

    import uvicorn

    workers = min(4, os.cpu_count() or 1) if workers is None else workers
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=512)
    # Answers are written in two parts, and the second must not wait for word of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = listening.getsockname()[1]
    local = host in ("127.0.0.1", "localhost", "::1")
    # A name of elsewhere that points here must not read what only this machine may.
    app = Site(models, workers).app(["127.0.0.1", "localhost"] if local else ["*"])
    config = uvicorn.Config(
        app,
        http=_hasty_protocol(),
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
