"""A small HTTP/1.1 client over asyncio streams: on two cores a full client would be half of what is measured."""

from __future__ import annotations

import asyncio
import json
import time
from types import TracebackType
from typing import Any, Self


class Connection:
    """One kept-alive connection to ``host:port``; requests on it come one after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def post(self, path: str, body: Any) -> tuple[Any, float]:
        """Send JSON and read the whole answer.

        Returns:
            The answer (JSON, or the last ``data:`` object of an event stream) and the seconds until the first
            byte of its body.

        Raises:
            ValueError: the status isn't 200.
        """
        payload = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(payload)}\r\n\r\n"
        begun = time.perf_counter()
        self._writer.write(head.encode() + payload)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        if "content-length" in headers:
            content, first = (
                await self._reader.readexactly(int(headers["content-length"])),
                time.perf_counter(),
            )
        else:
            content, first = await self._chunks()
        if not lines[0].startswith("http/1.1 200 "):
            raise ValueError(f"{path}: {lines[0]}: {content[:300].decode(errors='replace')}")
        if headers["content-type"].startswith("text/event-stream"):
            content = content.rstrip().rpartition(b"data: ")[2]
        return json.loads(content), first - begun

    async def _chunks(self) -> tuple[bytes, float]:
        """A chunked body, and when its first chunk was there."""
        content, first = b"", 0.0
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            content += (await self._reader.readexactly(size + 2))[:-2]
            first = first or time.perf_counter()
        await self._reader.readuntil(b"\r\n")
        return content, first
