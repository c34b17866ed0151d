"""Models behind an OpenAI chat completions endpoint: OpenAI's own and all that speak like it.

`OpenAIChatModel("gpt-5")`, or with the `base_url` of another provider or of a local server.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
import openai

from callboard.errors import ConfigurationError, ErrorCategory, ModelError
from callboard.messages import StopReason
from callboard.model import Capabilities, Delta, ModelRequest, StopDelta
from callboard_providers.models.blob_media import BlobMedia
from callboard_providers.models.chat_client import CLOSE_S, ChatConnection, ChatConnections
from callboard_providers.models.chat_errors import FAILURES, model_error, stream_error
from callboard_providers.models.chat_messages import ChatMessages
from callboard_providers.models.chat_request import chat_body, true_names
from callboard_providers.models.chat_stream import ChatStream
from callboard_providers.models.server_events import ServerEvents

OPENAI_URL = "https://api.openai.com/v1"
USAGE_WAIT_S = 10.0  # for what comes after the stop reason
ApiKey = str | Callable[[], str | Awaitable[str]]
_BROKEN = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError, httpx2.CloseError)


class OpenAIChatModel:
    """A model by its name at an endpoint.

    `base_url` and `api_key` come from OPENAI_BASE_URL and OPENAI_API_KEY where they are not given.
    Both are read anew for each request; `api_key` may be a callable, also an async one, for keys
    that expire. An endpoint given by `base_url` may need no key.

    `keep_alive=False` is for servers that close connections they promised to keep.
    `sends_stop_reason=False` is for those that never say why they stopped: the clean end of the
    stream counts. `first_byte_timeout_s` is how long the first chunk may take (the settings' idle
    timeout by default), for servers that read long prompts slowly. `max_tokens_field` is the name
    of that setting in the body: OpenAI's own changed it. `label` is the name it goes by.

    Enter it (`async with`, re-entrant) to keep connections between requests; a run does.

    Raises:
        ConfigurationError: `base_url` is no URL.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        capabilities: Capabilities | None = None,
        keep_alive: bool = True,
        sends_stop_reason: bool = True,
        system_anywhere: bool = False,
        max_tokens_field: str | None = None,
        first_byte_timeout_s: float | None = None,
        label: str | None = None,
    ) -> None:
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"base_url must begin with http:// or https://, unlike {base_url!r}"
            )
        self._model = name
        self._label = label or f"openai:{name}"
        self._base_url = base_url
        self._api_key = api_key
        self._capabilities = capabilities or Capabilities(images=True, files=True)
        self._sends_stop_reason = sends_stop_reason
        self._first_byte_timeout_s = first_byte_timeout_s
        self._messages = ChatMessages(model=self._label, system_anywhere=system_anywhere)
        self._media = BlobMedia()
        self._max_tokens_field = max_tokens_field or (
            "max_tokens" if base_url else "max_completion_tokens"
        )
        self._connections = ChatConnections(keep_alive=keep_alive, base_url=base_url or "")

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self._model!r}, base_url={self._base_url!r})"

    @property
    def name(self) -> str:
        return self._label

    @property
    def base_url(self) -> str:
        """Where requests go now."""
        return self._base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def __aenter__(self) -> Self:
        await self._connections.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connections.__aexit__(kind, error, trace)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        """Ask the model.

        Raises:
            ModelError: with the category of what went wrong, before or in the stream.
            ConfigurationError: the offer's choice is none of its tools.
            BlobLost: media of the conversation are not in its store any more.
        """
        body = chat_body(
            await self._media.loaded(request),
            model=self._model,
            messages=self._messages,
            max_tokens_field=self._max_tokens_field,
        )
        key = await self._key()
        async with self._connections.lease() as connection:
            answer = _Answer(request, body, key, self._first_byte_timeout_s)
            try:
                await self._open(answer, connection)
                async with aclosing(answer.deltas()) as deltas:
                    async for delta in deltas:
                        yield delta
            finally:
                await answer.close()
        stop = answer.stop or (None if self._sends_stop_reason else StopDelta(StopReason.OTHER))
        if stop is not None:
            yield stop

    async def _open(self, answer: _Answer, connection: ChatConnection) -> None:
        """Send the request; once more on a new connection where a kept one turned out dead."""
        url, kept = self.base_url, connection.was_used
        connection.was_used = True
        try:
            await answer.open(connection.client(url, answer.key))
        except ModelError as error:
            if not kept or not _died(error):
                raise
            answer.own = self._connections.make()
            await answer.open(answer.own.client(url, answer.key))

    async def _key(self) -> str:
        given = self._api_key() if callable(self._api_key) else self._api_key
        key = await given if inspect.isawaitable(given) else given
        key = key or os.environ.get("OPENAI_API_KEY")
        if key:
            return key
        if self._base_url is None:
            raise ModelError(
                "no key: set OPENAI_API_KEY, or pass api_key", category=ErrorCategory.AUTH
            )
        return "none"  # the SDK insists on one


def _died(error: ModelError) -> bool:
    """Whether the connection broke before anything of an answer came."""
    cause = error.__cause__
    return isinstance(cause, openai.APIConnectionError) and isinstance(cause.__cause__, _BROKEN)


class _Answer:
    """One request and the reading of its answer. No cancel scope is held across a yield."""

    def __init__(
        self,
        request: ModelRequest,
        body: dict[str, Any],
        key: str,
        first_byte_timeout_s: float | None,
    ) -> None:
        self.key = key
        self.own: ChatConnection | None = None
        self.stop: StopDelta | None = None
        self._body = {**body, "stream": True}
        self._reader = ChatStream(true_names(request.offer))
        self._events = ServerEvents()
        self._idle_s = request.settings.idle_timeout_s
        self._first_s = first_byte_timeout_s or self._idle_s
        self._response: httpx2.Response | None = None

    async def open(self, client: openai.AsyncOpenAI) -> None:
        """Send the request and wait for the head of the answer."""
        with anyio.move_on_after(self._first_s):
            try:
                response: Any = await client.post(
                    "/chat/completions",
                    body=self._body,
                    cast_to=httpx2.Response,  # as it is: the SDK's own reader is left out
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                )
            except FAILURES as error:
                raise model_error(error, secret=self.key) from error
            self._response = response
            return
        raise _silent(self._first_s)

    async def deltas(self) -> AsyncGenerator[Delta]:
        """What the chunks hold. A connection that breaks after the stop reason broke nothing."""
        assert self._response is not None
        source = self._response.aiter_bytes()
        limit_s = self._first_s
        try:
            while (piece := await self._next(source, limit_s)) is not None:
                for data in self._events.feed(piece) if piece else self._events.flush():
                    for delta in self._read(data):
                        yield delta
                if not piece:
                    break
                limit_s = min(self._idle_s, USAGE_WAIT_S) if self._reader.finished else self._idle_s
        finally:
            await _end(self._response, source)
        self.stop = self._reader.stop()

    async def _next(self, source: AsyncGenerator[bytes, None], limit_s: float) -> bytes | None:
        """The next bytes, b"" at the end, None where what is missing does not matter."""
        with anyio.move_on_after(limit_s):
            try:
                return await anext(source, b"")
            except FAILURES as error:
                if self._reader.finished:
                    return None
                raise model_error(error, secret=self.key) from error
        if self._reader.finished:
            return None
        raise _silent(limit_s)

    def _read(self, data: str) -> Iterator[Delta]:
        if data.startswith("[DONE]"):
            return
        try:
            chunk = json.loads(data)
            if chunk.get("error"):
                raise stream_error(chunk["error"], secret=self.key)
            yield from self._reader.read(chunk)
        except (ValueError, AttributeError, TypeError) as error:  # no JSON, or of another shape
            raise model_error(error, secret=self.key) from error

    async def close(self) -> None:
        """Hang up, also when the task is being cancelled."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            if self._response is not None:
                await self._response.aclose()
        if self.own is not None:
            await self.own.close()


async def _end(response: httpx2.Response, source: AsyncGenerator[bytes, None]) -> None:
    """Hang up and let the generators inside the HTTP client see it: dropped ones upset trio."""
    with anyio.move_on_after(CLOSE_S, shield=True), suppress(*FAILURES):
        await response.aclose()
        async for _ in source:
            pass


def _silent(limit_s: float) -> ModelError:
    return ModelError(f"the model sent nothing for {limit_s:g} s", category=ErrorCategory.NETWORK)
