"""The service as a Starlette application: predict, health, OpenAPI, and a page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from chainrule.data import TableError
from chainrule.serve.batching import Asked, Batcher, Full, Stopped
from chainrule.serve.description import openapi
from chainrule.serve.limits import Limits, limits_for
from chainrule.serve.page import front_page, policy_of
from chainrule.serve.pictures import IMAGE, MistakeInRow, takes_images
from chainrule.serve.rows import has_intervals, ignored, wanted, wrong_with
from chainrule.train import FittedNetwork

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["NEEDED", "application"]

JSON = "application/json"
NEEDED = (
    "chainrule serve needs Starlette and uvicorn; install them with: pip install 'chainrule[serve]'"
)


class _Refused(Exception):
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: int, error: str, mistakes: list[dict[str, Any]] | None = None):
        super().__init__(error)
        self.status = status
        self.content: dict[str, Any] = {"error": error}
        if mistakes is not None:
            self.content["mistakes"] = mistakes


def application(network: FittedNetwork, limits: Limits | None = None) -> Starlette:
    """The service of a network, for any server of ASGI applications.

    Args:
        network: of ``fit_table`` or ``fit_images``, or loaded.
        limits: what it takes; see :class:`Limits`.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise ImportError(NEEDED) from error
    service = _Service(network, limits or limits_for(network))
    routes = [
        Route("/", service.front, methods=["GET"]),
        Route("/health", service.health, methods=["GET"]),
        Route("/openapi.json", service.described, methods=["GET"]),
        Route("/predict", service.predict, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=service.lifespan)


class _Service:
    """What the routes do."""

    def __init__(self, network: FittedNetwork, limits: Limits):
        self.network, self.limits = network, limits
        self.columns, self.images = wanted(network), takes_images(network)
        self.held = 0  # bytes of bodies at work
        self.document = json.dumps(openapi(network, limits)).encode()
        self.page = front_page(network, limits).encode()
        self.began = time.monotonic()
        self.batcher: Batcher | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Answers between the start and the end of the server."""
        self.batcher = Batcher(self.network, self.limits)
        self.batcher.start()
        try:
            yield
        finally:
            await self.batcher.close()

    async def front(self, request: Request) -> Response:
        """The page."""
        policy = policy_of(self.network)
        headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}
        return _response(self.page, "text/html", headers=headers)

    async def described(self, request: Request) -> Response:
        """The OpenAPI document."""
        return _response(self.document)

    async def health(self, request: Request) -> Response:
        """That it answers, and how much it has done."""
        batcher = self._running()
        return _response(
            {
                "status": "ok",
                "target": self.network.about["target"],
                "task": self.network.task,
                "rows_answered": batcher.answered,
                "rows_waiting": batcher.waiting,
                "batches": batcher.batches,
                "seconds": round(time.monotonic() - self.began, 3),
            }
        )

    def _running(self) -> Batcher:
        if self.batcher is None:
            raise RuntimeError(
                "serve: the application was not started; its server must run the lifespan"
            )
        return self.batcher

    async def predict(self, request: Request) -> Response:
        """Answers for rows."""
        try:
            return _response(await self._predicted(request))
        except _Refused as refused:
            headers = {"Retry-After": "1"} if refused.status in (429, 503) else {}
            return _response(refused.content, status=refused.status, headers=headers)
        finally:
            self.held -= getattr(request.state, "size", 0)

    async def _predicted(self, request: Request) -> dict[str, Any]:
        asked = self._asked(request)
        kind = self._kind(request)
        body = await self._body(request)
        rows = _parsed(body) if kind == JSON else [{IMAGE: body}]
        if len(rows) > self.limits.max_rows:
            raise _Refused(413, f"{len(rows)} rows; at most {self.limits.max_rows} in one request")
        mistakes = wrong_with(rows, self.columns)
        if mistakes:
            first = mistakes[0]
            place = f"row {first['row']}" + (
                f", column {first['column']!r}" if first["column"] is not None else ""
            )
            raise _Refused(422, f"{place}: {first['rule']}", mistakes)
        try:
            async with asyncio.timeout(self.limits.timeout):
                found = await self._running().answer(rows, asked)
        except TimeoutError:
            raise _Refused(503, f"no answer within {self.limits.timeout:g} s") from None
        except Full as error:
            raise _Refused(429, str(error)) from None
        except Stopped as error:
            raise _Refused(503, str(error)) from None
        except MistakeInRow as error:
            told = {"row": error.row, "column": IMAGE, "rule": error.rule}
            raise _Refused(422, str(error), [told]) from None
        except TableError as error:
            told = {"row": None, "column": None, "rule": str(error)}
            raise _Refused(422, str(error), [told]) from None
        return {"answers": found, "ignored": ignored(rows, self.network)}

    def _asked(self, request: Request) -> Asked:
        """What is wanted beside predictions, by the parameters of the address."""
        given = dict(request.query_params)
        probabilities, interval = given.pop("probabilities", "false"), given.pop("interval", None)
        if given:
            names = "probabilities and interval"
            raise _Refused(400, f"unknown parameter {next(iter(given))!r}; there are {names}")
        if probabilities not in ("true", "false"):
            raise _Refused(400, f"probabilities must be true or false, got {probabilities!r}")
        if probabilities == "true" and not self.network.target.classes:
            raise _Refused(400, "probabilities: this network predicts numbers, not classes")
        return probabilities == "true", self._level(interval)

    def _level(self, given: str | None) -> float | None:
        if given is None:
            return None
        if not has_intervals(self.network):
            raise _Refused(400, "interval: only networks for the task regression have intervals")
        try:
            level = float(given)
        except ValueError:
            level = math.nan
        if not 0 < level < 1:
            raise _Refused(400, f"interval must be a number between 0 and 1, got {given!r}")
        return level

    def _kind(self, request: Request) -> str:
        """What the body is, by its name."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Also so that a page of another site cannot send rows without asking the browser first.
        if kind == JSON or (self.images and kind.startswith("image/")):
            return kind
        also = ", or image/png and the like for one file" if self.images else ""
        raise _Refused(415, f"Content-Type must be {JSON}{also}, got {kind!r}")

    async def _body(self, request: Request) -> bytes:
        """The body, if it is not too long, and there in time."""
        limit = self.limits.max_bytes
        parts, request.state.size = [], 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                async for part in request.stream():
                    request.state.size += len(part)
                    self.held += len(part)
                    if request.state.size > limit:
                        raise _Refused(413, f"the body is longer than {limit} bytes")
                    if self.held > self.limits.max_held:
                        raise _Refused(429, "too many bytes are at work; try again in a moment")
                    parts.append(part)
        except TimeoutError:
            raise _Refused(408, f"no whole body within {self.limits.timeout:g} s") from None
        return b"".join(parts)


def _parsed(body: bytes) -> list[Any]:
    """One row or a list of rows, as a list."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Refused(400, f"the body is not JSON: {error}") from None
    rows = [value] if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows:
        raise _Refused(422, "the body must be a row (an object) or a list of at least one row", [])
    return rows


def _response(
    content: Any,
    kind: str = "application/json",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    from starlette.responses import Response

    body = content if isinstance(content, bytes) else json.dumps(content, allow_nan=False).encode()
    return Response(body, status, headers, kind)
