"""The conformance kit for model adapters: `await check_model(lambda: MyModel("name"))`.

It asks real questions, so it runs against a live model, a local one, or a server that is scripted
to answer sensibly. It knows nothing but the Model protocol and the assembler.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, cast

import anyio
import anyio.lowlevel

from callboard.assembler import Complete
from callboard.errors import ConfigurationError, ModelError
from callboard.messages import AssistantMessage, ConversationMessage, ToolCall, UserMessage
from callboard.model import (
    Capabilities,
    Delta,
    Model,
    ModelRequest,
    ModelSettings,
    StopDelta,
    TextDelta,
    UsageDelta,
    WholeDelta,
)
from callboard.testing.asking import ask_model, make_request, make_result
from callboard.tooling.tools import Tool

GREETING = "Say hello in one short sentence."
SUM = "Use the tool add to add 17 and 25. Then tell me the sum in digits."
SETTINGS = ModelSettings(temperature=0.0, max_tokens=300)

Case = Callable[[Model], Awaitable[None]]


async def _never_run(arguments: Mapping[str, Any], context: object) -> str:
    return str(arguments["a"] + arguments["b"])


def _add() -> Tool:
    whole = {"type": "integer"}
    return Tool.from_schema(
        name="add",
        description="Add two integers.",
        parameters={
            "type": "object",
            "properties": {"a": whole, "b": whole},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        run=_never_run,
    )


async def check_model(
    make_model: Callable[[], Model],
    *,
    cases: Iterable[str] | None = None,
    timeout_s: float = 120.0,
) -> None:
    """Run every case (or the named ones, see CASES) on a fresh model each.

    The model must greet when asked to, call `add` with 17 and 25 when it must, and say 42 when
    it got that result. A model without tools (`capabilities.tools`) is spared those cases.

    Raises:
        AssertionError: naming each case that failed and what was wrong.
    """
    failed: list[str] = []
    for name in CASES if cases is None else cases:
        if name not in CASES:
            raise ConfigurationError(f"{name!r} is no case; there are {', '.join(CASES)}")
        model = make_model()
        if name in _WITH_TOOLS and not model.capabilities.tools:
            continue
        try:
            with anyio.fail_after(timeout_s):
                async with _entered(model):
                    await CASES[name](model)
        except TimeoutError:
            failed.append(f"{name}: no end after {timeout_s} s")
        except (AssertionError, ModelError) as problem:
            failed.append(f"{name}: {type(problem).__name__}: {problem}")
    if failed:
        raise AssertionError("the model does not conform\n  " + "\n  ".join(failed))


@asynccontextmanager
async def _entered(model: Model) -> AsyncGenerator[None]:
    """Enter a model that can be entered, twice, as two runs at once would."""
    if not hasattr(model, "__aenter__"):
        yield
        return
    manager = cast(AbstractAsyncContextManager[object], model)
    async with manager, manager:
        yield


def _ensure(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _ensure_kind(value: object, kind: type) -> None:
    _ensure(isinstance(value, kind), f"{value!r} is not of the class {kind.__name__}")


async def _message(request: ModelRequest, seen: list[Delta] | None = None) -> AssistantMessage:
    result = await ask_model(replace(request, settings=SETTINGS), seen=seen)
    if isinstance(result, Complete):
        return result.message
    raise AssertionError(f"the answer is incomplete: {result.reason}; so far {result.message!r}")


def _ensure_greeting(message: AssistantMessage) -> None:
    _ensure(message.text.strip(), f"a greeting was asked for and no text came: {message!r}")
    _ensure(not message.calls, f"no tools were offered and one was called: {message.calls!r}")


async def _describes_itself(model: Model) -> None:
    _ensure_kind(model.name, str)
    _ensure(model.name, "the name is empty")
    _ensure_kind(model.capabilities, Capabilities)


async def _answers(model: Model) -> None:
    _ensure_greeting(await _message(make_request(model, messages=GREETING)))


async def _answers_after_a_system_prompt(model: Model) -> None:
    request = make_request(model, messages=GREETING, system="You are brief.")
    _ensure_greeting(await _message(request))


async def _deltas_fold_to_the_message(model: Model) -> None:
    seen: list[Delta] = []
    message = await _message(make_request(model, messages=GREETING), seen)
    shown = "".join(map(_shown_text, seen))
    _ensure(shown == message.text, f"the deltas read {shown!r}, the message {message.text!r}")
    stops = [at for at, delta in enumerate(seen) if isinstance(delta, StopDelta)]
    _ensure(len(stops) == 1, f"{len(stops)} stop reasons came, one is wanted")
    late = [delta for delta in seen[stops[0] + 1 :] if not isinstance(delta, UsageDelta)]
    _ensure(not late, f"after the stop reason came {late!r}; only usage may follow it")


def _shown_text(delta: Delta) -> str:
    if isinstance(delta, WholeDelta):
        return AssistantMessage(content=tuple(delta.content)).text
    return delta.text if isinstance(delta, TextDelta) else ""


async def _first_call(model: Model) -> tuple[AssistantMessage, ToolCall]:
    message = await _message(make_request(model, messages=SUM, tools=[_add()], choice="required"))
    _ensure(message.calls, f"the tool add was to be called and was not: {message!r}")
    return message, message.calls[0]


async def _calls_a_tool(model: Model) -> None:
    _, call = await _first_call(model)
    _ensure(call.name == "add", f"the tool {call.name!r} was called, only add was offered")
    _ensure(call.problem is None, f"the arguments {call.raw!r} are not usable: {call.problem}")
    numbers = sorted(call.arguments.values(), key=str)
    _ensure(numbers == [17, 25], f"the arguments are {call.raw!r}, 17 and 25 were wanted")


async def _reads_a_result(model: Model) -> None:
    message, _ = await _first_call(model)
    results = [make_result(call, "42") for call in message.calls]
    said: list[ConversationMessage] = [UserMessage.of(SUM), message, *results]
    answer = await _message(make_request(model, messages=said, tools=[_add()]))
    _ensure("42" in answer.text, f"the tool's result was 42 and the answer is {answer!r}")


async def _is_cancelled_in_mid_stream(model: Model) -> None:
    with anyio.CancelScope() as scope:
        async with aclosing(_open(model)) as deltas:
            async for _ in deltas:
                scope.cancel()
                await anyio.lowlevel.checkpoint()
    _ensure(scope.cancelled_caught, "a cancelled stream went on to its end")
    await _answers(model)


async def _is_closed_in_mid_stream(model: Model) -> None:
    deltas = _open(model)
    await anext(deltas)
    try:
        await deltas.aclose()
    except RuntimeError as problem:
        raise AssertionError(f"it went on after it was closed: {problem}") from problem
    await _answers(model)


def _open(model: Model) -> AsyncGenerator[Delta]:
    deltas = model.stream(make_request(model, messages=GREETING))
    return cast(AsyncGenerator[Delta], deltas)


async def _answers_two_at_once(model: Model) -> None:
    answers: list[AssistantMessage] = []
    problems: list[ModelError | AssertionError] = []

    async def ask() -> None:
        try:
            answers.append(await _message(make_request(model, messages=GREETING)))
        except (ModelError, AssertionError) as problem:
            problems.append(problem)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
    _ensure(not problems, f"two requests at once: {problems!r}")
    for message in answers:
        _ensure_greeting(message)


async def _counts_tokens_or_says_unknown(model: Model) -> None:
    used = (await _message(make_request(model, messages=GREETING))).usage
    for name, count in asdict(used).items():
        _ensure(count is None or count >= 0, f"usage.{name} is {count!r}")
    _ensure(used.input_tokens != 0, "0 input tokens: unknown is None")
    _ensure(used.output_tokens != 0, "0 output tokens: unknown is None")
    if used.input_tokens is not None and used.cached_tokens is not None:
        _ensure(used.cached_tokens <= used.input_tokens, f"more cached than read: {used!r}")


CASES: Mapping[str, Case] = {
    "describes itself": _describes_itself,
    "answers": _answers,
    "answers after a system prompt": _answers_after_a_system_prompt,
    "deltas fold to the message": _deltas_fold_to_the_message,
    "calls a tool": _calls_a_tool,
    "reads a result": _reads_a_result,
    "is cancelled in mid-stream": _is_cancelled_in_mid_stream,
    "is closed in mid-stream": _is_closed_in_mid_stream,
    "answers two at once": _answers_two_at_once,
    "counts tokens or says unknown": _counts_tokens_or_says_unknown,
}
_WITH_TOOLS = frozenset({"calls a tool", "reads a result"})
