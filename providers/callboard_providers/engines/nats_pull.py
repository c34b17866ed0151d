"""Pulling the messages of a consumer, by requests of our own.

The server sends them as they come, up to the number asked for, and a heartbeat while none comes.
nats-py's `fetch` asks twice for each message that has to be waited for, and tells a slow answer
and an empty queue by the same error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import nats.errors
from nats.aio.msg import Msg

from callboard_providers.engines.nats_line import JetStream

AT_ONCE = 64  # messages that one request is for
EXPIRES_S = 30.0
HEARTBEAT_S = 1.0
PAUSE_S = 0.25  # after an election, or when the consumer is gone
_NS = 10**9


class Pull:
    """One consumer's messages, each handed to `hear` in the order of the server."""

    def __init__(
        self, line: JetStream, stream: str, consumer: str, hear: Callable[[Msg], Awaitable[None]]
    ) -> None:
        self._line = line
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._hear = hear
        self._left = 0  # messages that may come yet for the last request
        self._failed = False
        self._came = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        inbox = self._line.client.new_inbox()
        listening = await self._line.listen(inbox, self._take)
        try:
            while True:
                self._left, self._failed = AT_ONCE, False
                try:
                    await self._ask(inbox)
                except nats.errors.Error:
                    self._failed = True  # there is no connection now
                if self._failed:
                    await anyio.sleep(PAUSE_S)
        finally:
            with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
                await listening.unsubscribe()

    async def _ask(self, inbox: str) -> None:
        """One request, until all came that it is for, it has ended, or nothing is heard of it."""
        request = {
            "batch": AT_ONCE,
            "expires": round(EXPIRES_S * _NS),
            "idle_heartbeat": round(HEARTBEAT_S * _NS),
        }
        await self._line.client.publish(self._subject, json.dumps(request).encode(), reply=inbox)
        while self._left > 0:
            self._came.clear()
            with anyio.move_on_after(2.5 * HEARTBEAT_S) as silence:
                await self._came.wait()
            if silence.cancelled_caught:
                return  # what still comes for it is taken all the same

    async def _take(self, message: Msg) -> None:
        status = (message.headers or {}).get("Status")
        if status is None:
            self._left -= 1
            await self._hear(message)
        elif status != "100":  # no heartbeat: the request has ended
            self._left = 0
            self._failed = status not in ("404", "408")  # nothing came in time
        self._came.set()
