"""The embedded model: a small language model that runs on this machine, in a child process.

`LocalModel()` takes the default; see `local_files` for which one that is and where files are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio.to_thread
import structlog

from callboard.errors import ConfigurationError
from callboard.model import (
    Capabilities,
    Delta,
    ModelRequest,
    ModelSettings,
    StopDelta,
    TextDelta,
)
from callboard_providers.models import local_files
from callboard_providers.models.action_stream import ActionStream
from callboard_providers.models.json_action import JsonAction
from callboard_providers.models.local_fetch import fetch
from callboard_providers.models.local_process import SERVERS, LocalServer, ServerSettings

MAX_TOKENS = 1024  # without a limit, a small model under a grammar may go on for ever
TEMPERATURE = 0.3
ACTION_TEMPERATURE = 0.0  # small models choose their actions best without chance
TEMPLATE = Path(__file__).with_name("bare.jinja")
_log = structlog.get_logger("callboard.local")


class ToolMode(StrEnum):
    """How tools are put to the model."""

    JSON_ACTION = "json-action"  # by constrained JSON and worked examples
    NATIVE = "native"  # as the server's own tools


class LocalModel:
    """A known model by its name, or any .gguf file by its path; None is the default.

    The file is fetched at the first request where it is missing (about a gigabyte; `fetch=False`
    refuses instead). The server starts with the first request, takes seconds to load, is shared by
    all models of this process with the same settings, and goes a minute after its last use.

    `context_tokens` is shared by `parallel` requests at a time; more wait. `threads` is one less
    than the processors: on busy ones more threads are many times slower. `mode` is JSON_ACTION for
    the known models and NATIVE for others. Temperature is 0.3 (0 where tools are offered by
    JSON_ACTION) and answers end at 1,024 tokens where the settings do not say otherwise.

    Raises:
        ConfigurationError: no model has this name, or there is no such file.
    """

    def __init__(
        self,
        name: str | Path | None = None,
        *,
        mode: ToolMode | str | None = None,
        context_tokens: int = 8192,
        parallel: int = 2,
        threads: int | None = None,
        niceness: int = 0,
        fetch: bool = True,
    ) -> None:
        chosen = str(name or local_files.default_name())
        is_file = chosen.endswith(".gguf") or os.sep in chosen
        if is_file and not Path(chosen).expanduser().is_file():
            raise ConfigurationError(f"there is no model file {chosen!r}")
        self._file = Path(chosen).expanduser() if is_file else None
        self._chosen = chosen if is_file else local_files.known(chosen).name
        self._mode = ToolMode(mode or (ToolMode.NATIVE if is_file else ToolMode.JSON_ACTION))
        self._settings = ServerSettings(
            path="",
            alias=Path(chosen).stem if is_file else chosen,
            context_tokens=context_tokens,
            parallel=parallel,
            threads=threads or max(1, _processors() - 1),
            niceness=niceness,
            template="" if is_file else str(TEMPLATE),
        )
        self._fetch = fetch
        self._json_action = JsonAction()
        self._lock = threading.Lock()
        self._entered = 0
        self._kept: LocalServer | None = None

    def __repr__(self) -> str:
        return f"LocalModel({self._chosen!r}, mode={self._mode.value!r})"

    @property
    def name(self) -> str:
        return f"local:{self._chosen}"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(context_tokens=self._settings.context_tokens)

    @property
    def kept(self) -> LocalServer | None:
        """The server that is kept while this model is entered, once a request was made."""
        return self._kept

    async def __aenter__(self) -> Self:
        with self._lock:
            self._entered += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._entered -= 1
            kept = None if self._entered else self._kept
            self._kept = self._kept if self._entered else None
        if kept is not None:
            SERVERS.give_back(kept)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        """Ask the model.

        Raises:
            ModelError: the file could not be fetched or served, or the request failed.
            MissingExtra: the engine is not installed.
        """
        file = self._file or await self._known_file()
        server = SERVERS.take(replace(self._settings, path=str(file)))
        try:
            self._keep(server)
            chat = await server.chat()
            asked, is_action = self._rewritten(request)
            told = chat.stream(asked)
            async with aclosing(told), aclosing(_actions(told) if is_action else told) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            SERVERS.give_back(server)

    def _rewritten(self, request: ModelRequest) -> tuple[ModelRequest, bool]:
        is_action = False
        if self._mode is ToolMode.JSON_ACTION:
            request, is_action = self._json_action.rewritten(request)
        limited = _limited(request.settings, ACTION_TEMPERATURE if is_action else TEMPERATURE)
        return replace(request, settings=limited), is_action

    def _keep(self, server: LocalServer) -> None:
        """While entered, the server stays, however long a tool takes."""
        with self._lock:
            if not self._entered or self._kept is server:
                return
            before, self._kept = self._kept, SERVERS.take(server.settings)
        if before is not None:
            SERVERS.give_back(before)

    async def _known_file(self) -> Path:
        """The file of a known model; a cancelled download is broken off."""
        found = await anyio.to_thread.run_sync(local_files.path, self._chosen)
        if found is not None:
            return found
        if not self._fetch:
            raise ConfigurationError(
                f"the model {self._chosen!r} is not on this machine: callboard model fetch "
                f"{self._chosen}"
            )
        _log.warning("fetching a model", model=self._chosen, into=str(local_files.model_dir()))
        unwanted = threading.Event()
        try:
            work = partial(fetch, self._chosen, partial(_unless, unwanted))
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            unwanted.set()


class _Unwanted(Exception):
    """Breaks a download off."""


def _unless(unwanted: threading.Event, so_far: int, in_all: int) -> None:
    if unwanted.is_set():
        raise _Unwanted(f"{so_far} of {in_all} bytes")


async def _actions(deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Delta]:
    """The deltas of an answer that is one JSON action."""
    action = ActionStream()
    async for delta in deltas:
        if isinstance(delta, TextDelta):
            for made in action.feed(delta.text):
                yield made
        elif isinstance(delta, StopDelta):
            for made in action.stopped(delta):
                yield made
        else:
            yield delta


def _limited(settings: ModelSettings, temperature: float) -> ModelSettings:
    return replace(
        settings,
        max_tokens=MAX_TOKENS if settings.max_tokens is None else settings.max_tokens,
        temperature=temperature if settings.temperature is None else settings.temperature,
    )


def _processors() -> int:
    """Those this process may use, where the system tells."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
