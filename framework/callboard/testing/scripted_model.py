"""A model whose answers are written down beforehand: deterministic, offline, and strict about
what it is asked.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

import anyio

from callboard.errors import ConfigurationError, ModelError, ScriptError
from callboard.messages import ConversationMessage, ToolCall
from callboard.model import Capabilities, Delta, ModelRequest, WholeDelta
from callboard.testing.script import Answer, Eof, Pause, ScriptedCall, ScriptItem, say
from callboard.testing.transcript_check import request_faults

TAKES_ALL = Capabilities(images=True, audio=True, files=True)


class ScriptedModel:
    """Plays a script, one item for each request, in order.

    An item is a text, `call(...)`, `say(...)`, `stream(...)`, an exception (raised), or a
    function of the request that returns an item (it may be async). `then` answers every request
    after the last item; without it such a request is a ScriptError.

    Each request is kept in `requests` and checked: every call has one result directly behind its
    message, and nothing is empty. `strict=False` leaves the check out.
    """

    def __init__(
        self,
        script: Iterable[ScriptItem] = (),
        *,
        then: ScriptItem | None = None,
        name: str = "scripted",
        capabilities: Capabilities = TAKES_ALL,
        strict: bool = True,
    ) -> None:
        if isinstance(script, (str, Answer, ScriptedCall)):
            raise ConfigurationError(f"a script is a list of answers, not {script!r}: put it in []")
        self._script = tuple(script)
        self._then = then
        self._name = name
        self._capabilities = capabilities
        self._strict = strict
        self._checked: tuple[ConversationMessage, ...] = ()  # what the last request proved valid
        self._call_numbers = itertools.count(1)
        self.requests: list[ModelRequest] = []  # their messages as a tuple of that moment
        self.open_streams = 0  # answers that are being played now

    def __repr__(self) -> str:
        return f"<ScriptedModel {self._name!r}: {self.used} of {len(self._script)} answers used>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def used(self) -> int:
        """How many items of the script were asked for."""
        return min(len(self.requests), len(self._script))

    def assert_complete(self) -> None:
        """Raise ScriptError if answers are left over."""
        left = self._script[self.used :]
        if left:
            raise ScriptError(
                f"{self._name!r} was asked {len(self.requests)} times and has {len(left)} answers"
                f" left; the next one is {left[0]!r}"
            )

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Play the next item of the script."""
        asked = replace(request, messages=tuple(request.messages))
        item = self._next(asked)
        self.open_streams += 1
        try:
            for step in (await self._answer(item, asked)).steps:
                if isinstance(step, Eof):
                    return
                if isinstance(step, Pause):
                    await anyio.sleep(step.seconds)
                else:
                    yield self._delta(step)
        finally:
            self.open_streams -= 1

    def _next(self, asked: ModelRequest) -> ScriptItem:
        at = len(self.requests)
        self.requests.append(asked)
        if self._strict:
            self._check(asked)
        if at < len(self._script):
            return self._script[at]
        if self._then is not None:
            return self._then
        raise ScriptError(
            f"{self._name!r} has {len(self._script)} answers and was asked once more; that request"
            f" ended with {_shown(asked.messages)}. Add an answer, or pass then='done'"
        )

    def _check(self, asked: ModelRequest) -> None:
        messages = tuple(asked.messages)
        known = len(self._checked)
        grown = messages[:known] == self._checked  # by identity first, so this costs little
        faults = request_faults(asked, start=known if grown else 0)
        if faults:
            which = f"request {len(self.requests)} of {self._name!r}"
            raise ScriptError(f"{which} is not valid: {'; '.join(faults)}")
        self._checked = messages

    async def _answer(self, item: ScriptItem, asked: ModelRequest) -> Answer:
        while callable(item) and not isinstance(item, BaseException):
            found = item(asked)
            item = await found if inspect.isawaitable(found) else found
        if isinstance(item, BaseException):
            raise item
        return _as_answer(item)

    def _delta(self, step: Delta | ScriptedCall | ModelError) -> Delta:
        if isinstance(step, ModelError):
            raise step.with_traceback(None)  # one script may raise it many times
        if not isinstance(step, ScriptedCall):
            return step
        id = f"call_{next(self._call_numbers)}" if step.id is None else step.id
        return WholeDelta((ToolCall(id=id, name=step.name, raw=step.raw),))


def _as_answer(item: object) -> Answer:
    if isinstance(item, Answer):
        return item
    if isinstance(item, (str, ScriptedCall)):
        return say(item)
    raise ScriptError(f"{item!r} is no answer: use a text, call, say, stream or an exception")


def _shown(messages: Sequence[ConversationMessage]) -> str:
    if not messages:
        return "no message"
    last = messages[-1]
    return f"the {last.role} message {last.text[:200]!r}"
