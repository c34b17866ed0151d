"""The embedded model for real: the small weights, the engine, a child process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from callboard.assembler import Complete
from callboard.errors import ErrorCategory, ModelError
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    ImageBlock,
    StopReason,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from callboard.model import Delta, ModelRequest, ModelSettings, TextDelta
from callboard.testing import ask_model, check_model, make_request
from callboard.tooling.tools import Tool, tool
from callboard_providers.models import LocalModel, OpenAIChatModel
from callboard_providers.models.local_fetch import fetch
from callboard_providers.models.local_files import SMALL, path
from callboard_providers.models.local_process import SERVERS, LocalServer, ServerSettings

pytestmark = [pytest.mark.live, pytest.mark.anyio]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool
def get_current_time(city: str) -> str:
    """Get the current local time in a city."""
    return f"14:05 in {city}"


@pytest.fixture
async def model() -> AsyncGenerator[LocalModel]:
    await anyio.to_thread.run_sync(fetch, SMALL)
    async with LocalModel(SMALL) as entered:
        yield entered


async def said(request: ModelRequest) -> AssistantMessage:
    result = await ask_model(request)
    assert isinstance(result, Complete), result
    return result.message


async def test_a_plain_answer_is_streamed(model: LocalModel) -> None:
    seen: list[Delta] = []
    await ask_model(make_request(model, messages="Count from one to five in words."), seen=seen)
    assert len([delta for delta in seen if isinstance(delta, TextDelta)]) > 3


async def test_truncation_is_told(model: LocalModel) -> None:
    cut = ModelSettings(max_tokens=5)
    request = make_request(model, messages="Tell me a long story.", settings=cut)
    assert (await said(request)).stop_reason is StopReason.LENGTH


async def test_overflow_is_told(model: LocalModel) -> None:
    with pytest.raises(ModelError) as caught:
        await ask_model(make_request(model, messages="one two three " * 4000))
    assert caught.value.category is ErrorCategory.CONTEXT_OVERFLOW


async def test_an_image_is_refused_as_such(model: LocalModel) -> None:
    image = ImageBlock(media_type="image/png", data=PIXEL)
    with pytest.raises(ModelError) as caught:
        await ask_model(make_request(model, messages=[UserMessage(content=(image,))]))
    assert caught.value.category is ErrorCategory.UNSUPPORTED_MEDIA


async def test_it_conforms(model: LocalModel) -> None:
    await check_model(lambda: LocalModel(SMALL))


async def answered(model: LocalModel, question: str, *tools: Tool) -> tuple[list[str], str]:
    """The calls that were made, and the answer, by the shortest loop there is."""
    messages: list[ConversationMessage] = [UserMessage.of(question)]
    called: list[str] = []
    for _ in range(5):
        message = await said(make_request(model, messages=messages, tools=tools))
        messages.append(message)
        if not message.calls:
            return called, message.text
        for call in message.calls:
            called.append(call.name)
            result = str({t.name: t for t in tools}[call.name].function(**call.arguments))
            messages.append(
                ToolResultMessage(call_id=call.id, tool_name=call.name, content=blocks_of(result))
            )
    return called, ""


async def test_one_tool_questions_are_right_nine_times_in_ten(model: LocalModel) -> None:
    right = 0
    for number in range(5):
        question = f"I have {120 + number} coins and find 35 more. How many coins do I have?"
        called, answer = await answered(model, question, add, get_current_time)
        right += called == ["add"] and str(155 + number) in answer
        city = ("Tokyo", "Lima", "Oslo", "Cairo", "Paris")[number]
        called, answer = await answered(model, f"What time is it in {city}?", add, get_current_time)
        right += called == ["get_current_time"] and "14:05" in answer
    assert right >= 9


async def test_an_action_that_is_left_in_mid_stream_leaves_nothing_behind(
    model: LocalModel,
) -> None:
    request = make_request(model, messages="Add 17 and 25.", tools=[add])
    async with aclosing(model.stream(request)) as deltas:
        await anext(deltas)
    assert (await said(make_request(model))).text


async def test_native_tools_are_real_calls(model: LocalModel) -> None:
    native = LocalModel(SMALL, mode="native")
    request = make_request(native, messages="Add 17 and 25.", tools=[add], choice="required")
    message = await said(request)
    assert [(call.name, call.problem) for call in message.calls] == [("add", None)]
    assert message.stop_reason is StopReason.TOOL_USE


async def test_a_round_of_native_tools_is_read(model: LocalModel) -> None:
    native = LocalModel(SMALL, mode="native")
    request = make_request(native, messages="Add 17 and 25.", tools=[add], choice="required")
    call = (await said(request)).calls[0]
    result = ToolResultMessage(call_id=call.id, tool_name="add", content=blocks_of("42"))
    history: list[ConversationMessage] = [
        UserMessage.of("Add 17 and 25."),
        AssistantMessage.of("", call),
        result,
    ]
    message = await said(make_request(native, messages=history))
    assert any(isinstance(block, TextBlock) for block in message.content)


def server_of(model: LocalModel) -> LocalServer:
    assert model.kept is not None
    return model.kept


async def test_a_server_that_was_killed_is_replaced(model: LocalModel) -> None:
    await said(make_request(model))
    first = server_of(model).process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await anyio.to_thread.run_sync(wait_until, lambda: not server_of(model).alive)
    await said(make_request(model))
    assert server_of(model).process_id != first


async def test_models_with_the_same_settings_share_a_server(model: LocalModel) -> None:
    async with LocalModel(SMALL) as other:
        await said(make_request(model))
        await said(make_request(other))
        assert server_of(model) is server_of(other)


async def test_a_file_that_is_no_model_says_so(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"broken\.gguf.*could not be served"):
        await ask_model(make_request(LocalModel(file)))


PARENT = """
import json, sys, time, anyio
from callboard_providers.models.local_process import SERVERS, ServerSettings
server = SERVERS.take(ServerSettings(**json.loads(sys.argv[1])))
if sys.argv[2] == "ready":
    anyio.run(server.chat)
while server.process_id is None:
    time.sleep(0.01)
print(server.process_id, flush=True)
sys.stdin.read()
"""


def settings() -> ServerSettings:
    return ServerSettings(
        path=str(path(SMALL)),
        alias="m",
        context_tokens=512,
        parallel=1,
        threads=1,
        niceness=5,
        template="",
    )


def wait_until(holds: Callable[[], bool]) -> None:
    """For what no event tells of: the end of a process that is no child of this one."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "10 s are over"
        time.sleep(0.02)


def is_gone(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # no /proc here, or gone in this moment
        return False
    return state == "Z"


@pytest.mark.parametrize("when", ["loading", "ready"])
@pytest.mark.parametrize("end", ["SIGKILL", "exit"])
def test_the_child_does_not_outlive_its_parent(when: str, end: str) -> None:
    fetch(SMALL)
    told = json.dumps(asdict(settings()))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PARENT, told, when]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not is_gone(child)
        if end == "SIGKILL":
            parent.kill()
        else:
            parent.communicate(timeout=20)
    wait_until(lambda: is_gone(child))


async def test_an_unused_server_goes_after_a_while() -> None:
    await anyio.to_thread.run_sync(fetch, SMALL)
    server = SERVERS.take(settings())
    await server.chat()
    SERVERS.give_back(server, linger_s=0.05)
    await anyio.to_thread.run_sync(wait_until, lambda: not server.alive)


async def test_the_server_wants_its_key() -> None:
    server = SERVERS.take(settings())
    stranger = OpenAIChatModel("m", base_url=(await server.chat()).base_url, api_key="wrong")
    with pytest.raises(ModelError) as caught:
        await ask_model(make_request(stranger))
    SERVERS.give_back(server, linger_s=0)
    assert caught.value.category is ErrorCategory.AUTH
