"""The front door: settles what needs no body, then hands a request to the surface that answers its path."""

from __future__ import annotations

import hmac
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlxcel.generated import dispatch
from mlxcel.handlers.errors import ApiError

from .answers import send_error
from .runtime import Runtime

PUBLIC = frozenset({"/", "/health", "/v1/health"})
"""Paths that need no API key."""

REQUEST_ID = b"x-request-id"
SAFE_ID = re.compile(rb"[\w.:-]{1,128}")


@dataclass(frozen=True, slots=True)
class Mounted:
    """A surface: its app, and the class of its errors."""

    app: ASGIApp
    error: type[ApiError]


class Dispatcher:
    """An ASGI app over all surfaces.

    Args:
        surfaces: by name.
        runtime: the running model.
        keys: API keys; none are asked for when empty.
        default: surface whose envelope answers paths that belong to nobody.
    """

    def __init__(
        self, surfaces: Mapping[str, Mounted], runtime: Runtime, keys: tuple[bytes, ...], default: str
    ) -> None:
        self._surfaces = surfaces
        self._runtime = runtime
        self._keys = keys
        self._default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, _decorated(scope, send))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if method == "OPTIONS":
            await _preflight(scope, send)
            return
        methods = _methods(path)
        wanted = "GET" if method == "HEAD" and "GET" in methods else method
        error = self._surfaces[methods.get(wanted) or self._owner(path, methods)].error
        try:
            if path not in PUBLIC:
                self._check_key(scope, error)
            if not methods:
                raise error(404, "File Not Found")
            if wanted not in methods:
                raise error(405, f"{method} is not allowed here", headers={"Allow": _allow(methods)})
            self._runtime.require(error)
        except ApiError as failure:
            await send_error(send, failure)
            return
        if method == "HEAD":
            scope, send = {**scope, "method": "GET"}, _headers_only(send)
        await self._surfaces[methods[wanted]].app(scope, receive, send)

    def _owner(self, path: str, methods: Mapping[str, str]) -> str:
        """The surface whose envelope fits a path that can't be answered."""
        if methods:
            return next(iter(methods.values()))
        return "openai" if path.startswith("/v1") and "openai" in self._surfaces else self._default

    def _check_key(self, scope: Scope, error: type[ApiError]) -> None:
        if not self._keys:
            return
        sent = _sent_key(scope)
        # All keys are compared, so that the time taken tells nothing of them.
        matches = [hmac.compare_digest(sent, key) for key in self._keys]
        if not any(matches):
            raise error(401, "Invalid API Key")


def _methods(path: str) -> Mapping[str, str]:
    """The surface of each method of a path."""
    exact = dispatch.EXACT.get(path)
    if exact is not None:
        return exact
    return next((methods for pattern, methods in dispatch.PATTERNS if pattern.fullmatch(path)), {})


def _allow(methods: Mapping[str, str]) -> str:
    return ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _sent_key(scope: Scope) -> bytes:
    return _header(scope, b"authorization").removeprefix(b"Bearer ") or _header(scope, b"x-api-key")


def _decorated(scope: Scope, send: Send) -> Send:
    """``send`` with the headers that every answer has."""
    asked = _header(scope, REQUEST_ID)
    identifier = asked if SAFE_ID.fullmatch(asked) else uuid.uuid4().hex.encode()
    origin = _header(scope, b"origin")

    async def decorated(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (REQUEST_ID, identifier)]
            if origin:
                headers.append((b"access-control-allow-origin", b"*"))
            message = {**message, "headers": headers}
        await send(message)

    return decorated


def _headers_only(send: Send) -> Send:
    async def without_body(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return without_body


async def _preflight(scope: Scope, send: Send) -> None:
    methods = _methods(scope["path"])
    headers = [
        (b"content-type", b"text/html"),
        (b"content-length", b"0"),
        (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
        (b"access-control-allow-headers", b"*"),
    ]
    if methods:
        headers.append((b"allow", _allow(methods).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Surfaces hold nothing that needs starting; the engine is started and stopped by the command."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
