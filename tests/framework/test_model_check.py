"""The conformance kit: a model that behaves passes, and each way to misbehave is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from callboard.errors import ConfigurationError, ErrorCategory, ModelError
from callboard.messages import TextBlock, ToolResultMessage, Usage
from callboard.model import Capabilities, Delta, ModelRequest, TextDelta, WholeDelta
from callboard.testing import (
    ScriptedModel,
    ScriptItem,
    call,
    check_model,
    eof,
    finish,
    raw_call,
    say,
    stream,
    think,
    usage,
)
from callboard.testing.model_check import CASES

pytestmark = pytest.mark.anyio

Script = Callable[[ModelRequest], ScriptItem]


def obliging(request: ModelRequest) -> ScriptItem:
    """Does what the kit asks for."""
    if isinstance(request.messages[-1], ToolResultMessage):
        return stream("It is ", "42.", finish("end"), usage(20, 4))
    if request.offer is not None:
        return stream(think("a sum"), call("add", a=17, b=25), usage(10, 9))
    return stream("Hel", "lo!", usage(8, 2))


def with_tools(item: ScriptItem) -> Script:
    """The obliging answers, but this one where tools are offered."""
    return lambda request: obliging(request) if request.offer is None else item


async def test_an_obliging_model_passes() -> None:
    await check_model(lambda: ScriptedModel(then=obliging))


async def test_a_model_that_does_not_stream_and_does_not_count_passes() -> None:
    def whole(request: ModelRequest) -> ScriptItem:
        if isinstance(request.messages[-1], ToolResultMessage):
            return "42"
        return say(call("add", a=25, b=17)) if request.offer else "Hello"

    await check_model(lambda: ScriptedModel(then=whole))


async def test_a_model_without_tools_is_spared_their_cases() -> None:
    await check_model(lambda: ScriptedModel(then="Hello", capabilities=Capabilities(tools=False)))


async def test_a_case_can_be_chosen() -> None:
    model = ScriptedModel(["Hello"])
    await check_model(lambda: model, cases=["answers"])
    model.assert_complete()


async def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'sings' is no case; there are describes itself"):
        await check_model(lambda: ScriptedModel(then=obliging), cases=["sings"])


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("answers", stream("Hello", eof())),
        ("answers", say("", stop="end")),
        ("answers", call("add")),
        ("answers", ModelError("down", category=ErrorCategory.NETWORK)),
        ("deltas fold to the message", stream("a", finish(), "b")),
        ("deltas fold to the message", stream("a", finish(), finish())),
        ("calls a tool", with_tools("17 + 25 = 42")),
        ("calls a tool", with_tools(call("plus", a=17, b=25))),
        ("calls a tool", with_tools(raw_call("add", '{"a": 17, "b": '))),
        ("calls a tool", with_tools(call("add", a="17", b="25"))),
        ("reads a result", with_tools(call("add", a=17, b=25))),
        ("answers two at once", stream("Hello", eof())),
        ("counts tokens or says unknown", say("Hello", usage=Usage(input_tokens=0))),
    ],
)
async def test_what_a_model_does_wrong_is_named(case: str, answer: ScriptItem) -> None:
    with pytest.raises(AssertionError, match=f"does not conform\n  {case}: "):
        await check_model(lambda: ScriptedModel(then=answer), cases=[case])


async def test_every_failed_case_is_named_at_once() -> None:
    with pytest.raises(AssertionError) as raised:
        await check_model(lambda: ScriptedModel(then=stream("Hello", eof())))
    assert len(str(raised.value).splitlines()) == len(CASES)  # the headline, all but the name


async def test_a_model_that_hangs_is_named() -> None:
    async def hang(_: ModelRequest) -> ScriptItem:
        await anyio.sleep_forever()
        return ""

    with pytest.raises(AssertionError, match="answers: no end after 3 s"):
        await check_model(lambda: ScriptedModel([hang]), cases=["answers"], timeout_s=3)


class Swallowing(ScriptedModel):
    """Goes on when it is cancelled in mid-stream."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        try:
            yield TextDelta("Hel")
            await anyio.lowlevel.checkpoint()
        except GeneratorExit:
            pass
        yield WholeDelta((TextBlock(text="lo"),))


async def test_a_model_that_swallows_its_end_is_named() -> None:
    with pytest.raises(AssertionError, match="it went on after it was closed"):
        await check_model(Swallowing, cases=["is closed in mid-stream"])


class Entered(ScriptedModel):
    """Notes how often it is entered."""

    depth = deepest = 0

    async def __aenter__(self) -> Entered:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.depth -= 1


async def test_a_model_that_can_be_entered_is_entered_twice() -> None:
    model = Entered(["Hello"])
    await check_model(lambda: model, cases=["answers"])
    assert (model.deepest, model.depth) == (2, 0)
