"""What a running tool is told about its call, and how it reports progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
from anyio.lowlevel import EventLoopToken, current_token


class ToolContext:
    """Given to the parameter that is annotated with this class, whatever its name.

    `idempotency_key` is the same when one call is run again (`attempt` then counts up from 1).
    `deadline` is a time of the event loop's clock (`anyio.current_time()`), or None. `deps` is
    what the agent was made with, `agent` the agent itself.

    The loop makes one per execution; it sets `on_update`, which gets every progress value, and
    `on_late`, which gets a text when an abandoned thread ends after all, and when a cancelled call
    does not end. Both run in the loop's thread. Building one takes 0.4 us.
    """

    __slots__ = (
        "_cancelled",
        "_ended",
        "_scope",
        "_thread",
        "_token",
        "agent",
        "attempt",
        "call_id",
        "deadline",
        "deps",
        "idempotency_key",
        "on_late",
        "on_update",
        "swallowed_cancel",
        "tool_name",
    )

    def __init__(
        self,
        call_id: str,
        tool_name: str,
        *,
        idempotency_key: str = "",
        attempt: int = 1,
        deps: Any = None,
        agent: Any = None,
        on_update: Callable[[Any], None] | None = None,
        on_late: Callable[[str], None] | None = None,
    ) -> None:
        self.call_id = call_id
        self.tool_name = tool_name
        self.idempotency_key = idempotency_key
        self.attempt = attempt
        self.deps = deps
        self.agent = agent
        self.on_update = on_update
        self.on_late = on_late
        self.deadline: float | None = None
        self._cancelled = False
        self._ended = False
        self._scope: anyio.CancelScope | None = None
        self._thread: int | None = None
        self._token: EventLoopToken | None = None
        self.swallowed_cancel = False  # set by `execute`: a native cancel came, and is not raised

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called. A long computation in a thread may look at it."""
        return self._cancelled

    @property
    def ended(self) -> bool:
        """Whether the call has its result already: nobody waits for this tool any more."""
        return self._ended

    def update(self, value: Any) -> None:
        """Report progress. Never raises, may be called in any thread, is nothing after the end."""
        if self._ended or self.on_update is None:
            return
        if self._thread == threading.get_ident():
            self._deliver(value)
        else:
            self.post(lambda: self._deliver(value))

    def cancel(self) -> None:
        """Cancel this one call: its result has status `cancelled`. Call it in the loop's thread."""
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def deaf(self) -> None:
        """Called by `execute`: the call was cancelled, and goes on."""
        if self.on_late is not None:
            self.on_late(
                f"the call {self.call_id!r} of {self.tool_name!r} was cancelled and does not end;"
                " a coroutine cannot be abandoned, so it is waited for"
            )

    def begin(self, scope: anyio.CancelScope, *, deadline: float | None) -> None:
        """Called by `execute` in the loop's thread."""
        self._scope = scope
        self.deadline = deadline
        self._thread = threading.get_ident()
        if self._cancelled:
            scope.cancel()

    def admit_threads(self) -> None:
        """Called by `execute` in the loop's thread where other threads may use this (1 us)."""
        self._token = current_token()

    def end(self) -> None:
        """Called by `execute`: later updates are ignored."""
        self._ended = True
        self._scope = None

    def post(self, act: Callable[[], None]) -> None:
        """Run `act` in the loop's thread soon, from any thread; dropped when the loop is over.

        Not `anyio.from_thread`, which waits for the answer: an abandoned thread would then wait
        for ever for a loop that has stopped, and keep the process from ending.
        """
        native: Any = self._token and self._token.native_token
        soon = getattr(native, "run_sync_soon", None) or getattr(
            native, "call_soon_threadsafe", None
        )
        if soon is None:
            return
        try:
            soon(act)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            return

    def _deliver(self, value: Any) -> None:
        if self._ended or self.on_update is None:
            return
        try:
            self.on_update(value)
        except Exception:  # noqa: BLE001  # a watcher's failure is not the tool's
            return
