"""HTTP connections and SDK clients of one model, one set for each event loop.

Used by `openai_chat`. Nothing is opened at construction; what is opened belongs to the event loop
it was opened in and is closed there.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType

import anyio
import httpx2
import openai
from anyio.lowlevel import EventLoopToken, current_token

CONNECT_S = 15.0
CLOSE_S = 5.0
_HERE = frozenset({"127.0.0.1", "localhost", "::1"})


class ChatConnection:
    """A pool of connections and the SDK client that uses it."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._sdk: openai.AsyncOpenAI | None = None
        self._for = ("", "")
        self.was_used = False  # a pooled connection may be there, and may be dead

    def client(self, base_url: str, api_key: str) -> openai.AsyncOpenAI:
        """The SDK client for this address and key: kept until one of the two changes."""
        if self._sdk is None or self._for != (base_url, api_key):
            self._for = (base_url, api_key)
            self._sdk = openai.AsyncOpenAI(
                base_url=base_url, api_key=api_key, http_client=self._http, max_retries=0
            )
        return self._sdk

    async def close(self) -> None:
        """Close the connections, also when the task is being cancelled."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self._http.aclose()


class ChatConnections:
    """Enter it (re-entrant) to keep connections; unentered, each lease has its own."""

    def __init__(self, *, keep_alive: bool, base_url: str) -> None:
        self._keep_alive = keep_alive
        self._plain_http = base_url.startswith("http://")
        self._is_here = httpx2.URL(base_url).host in _HERE
        self._open: dict[EventLoopToken, tuple[int, ChatConnection]] = {}

    async def __aenter__(self) -> ChatConnections:
        token = current_token()
        entered, connection = self._open.get(token) or (0, self.make())
        self._open[token] = (entered + 1, connection)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        token = current_token()
        entered, connection = self._open[token]
        if entered > 1:
            self._open[token] = (entered - 1, connection)
            return
        del self._open[token]
        await connection.close()

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[ChatConnection]:
        """The kept connection of this event loop, or one that is closed after the block."""
        kept = self._open.get(current_token())
        if kept is not None:
            yield kept[1]
            return
        connection = self.make()
        try:
            yield connection
        finally:
            await connection.close()

    def make(self) -> ChatConnection:
        """A connection of its own, which the caller closes."""
        limits = httpx2.Limits(
            max_connections=1000, max_keepalive_connections=100 if self._keep_alive else 0
        )
        return ChatConnection(
            httpx2.AsyncClient(
                limits=limits,
                timeout=httpx2.Timeout(None, connect=CONNECT_S),  # silence is watched by chunk
                verify=_trusting_nobody() if self._plain_http else True,
                trust_env=not self._is_here,  # no proxy to this machine
                follow_redirects=not self._plain_http,
            )
        )


def _trusting_nobody() -> ssl.SSLContext:
    """For plain HTTP: loading the certificates that it never needs takes 20 ms a client."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
