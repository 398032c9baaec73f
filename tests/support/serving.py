"""A server as ``mlxcel-serve`` runs it, in this process, on a free port of the loopback interface."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from mlxcel.engine.engine import Engine
from mlxcel.engine.loading import LoadedModel
from mlxcel.handlers.context import Context
from mlxcel.server.application import build
from mlxcel.server.main import engine_options, make_context, resolved
from mlxcel.server.options import parse
from mlxcel.server.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, headers (lower case) and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def events(self) -> list[Any]:
        """The data of each event, JSON decoded but for ``[DONE]``; comments are left out."""
        blocks = self.body.decode().split("\n\n")
        data = [block.removeprefix("data: ") for block in blocks if block.startswith("data: ")]
        return [text if text == "[DONE]" else json.loads(text) for text in data]


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    port: int
    context: Context

    @property
    def engine(self) -> Engine:
        return self.context.engine

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, timeout: float = 120) -> http.client.HTTPConnection:
        """A connection of its own."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request; ``body`` is sent as it is when it is bytes, else as JSON."""
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connect()
        try:
            connection.request(method, path, raw, headers or {})
            response = connection.getresponse()
            received = response.read()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, received)
        finally:
            connection.close()

    def post(self, path: str, body: Any, **kwargs: Any) -> Answer:
        """Send a POST."""
        return self.request("POST", path, body, **kwargs)

    def get(self, path: str, **kwargs: Any) -> Answer:
        """Send a GET."""
        return self.request("GET", path, **kwargs)

    def wait_until_idle(self, seconds: float = 20) -> None:
        """Wait until no slot works.

        Raises:
            AssertionError: one still does after ``seconds``.
        """
        end = time.monotonic() + seconds
        while any(slot.is_processing for slot in self.engine.slots()):
            assert time.monotonic() < end, "a slot is still busy"
            time.sleep(0.01)


@contextmanager
def serving(model: LoadedModel, *arguments: str, loaded: bool = True) -> Iterator[Served]:
    """Serve ``model`` with the command line ``arguments``; without ``loaded``, as while the model still loads."""
    options = resolved(parse(arguments, {}))
    engine = Engine(model, engine_options(options))
    engine.start()
    context = make_context(engine, options, int(time.time()))
    app = build(options, Runtime(context if loaded else None))
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="on", log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server didn't start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(port, context)
    finally:
        server.should_exit = True
        thread.join(30)
        engine.stop()
