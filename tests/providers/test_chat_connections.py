"""Connections: kept and closed, dead ones, dropped and silent streams, and several event loops."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest

from callboard.assembler import Complete
from callboard.errors import ConfigurationError, ErrorCategory, ModelError
from callboard.model import ModelSettings, TextDelta
from callboard.testing import ask_model, check_model, make_request
from callboard.testing.model_check import CASES
from callboard_providers.models import OpenAIChatModel
from callboard_providers.models.recorded import Answer, ReplayServer, piece, sse

SAY_OK = (piece(content="ok"), piece("stop"))
OK = sse(*SAY_OK)
QUICK = ModelSettings(idle_timeout_s=0.2)


async def text_of(model: OpenAIChatModel) -> str:
    result = await ask_model(make_request(model, settings=QUICK))
    assert isinstance(result, Complete), result
    return result.message.text


@pytest.mark.anyio
async def test_an_entered_model_keeps_its_connection() -> None:
    with ReplayServer([OK]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        async with model, model:
            assert [await text_of(model) for _ in range(3)] == ["ok"] * 3
        assert server.connections == 1


@pytest.mark.anyio
async def test_without_keep_alive_each_request_has_its_own_connection() -> None:
    with ReplayServer([OK]) as server:
        model = OpenAIChatModel("m", base_url=server.url, keep_alive=False)
        async with model:
            await text_of(model)
            await text_of(model)
        assert server.connections == 2


@pytest.mark.anyio
async def test_a_kept_connection_that_died_costs_nothing() -> None:
    """The server closes it after an answer, having promised to keep it."""
    with ReplayServer([sse(*SAY_OK, then="hush")]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        async with model:
            assert [await text_of(model) for _ in range(8)] == ["ok"] * 8
        assert len(server.requests) == 8


@pytest.mark.anyio
async def test_a_drop_in_the_stream_is_a_network_error_and_no_second_request() -> None:
    with ReplayServer([sse(piece(content="Here is "), done=False, then="drop")]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        with pytest.raises(ModelError) as caught:
            await text_of(model)
        assert caught.value.category is ErrorCategory.NETWORK
        assert len(server.requests) == 1


@pytest.mark.anyio
async def test_a_drop_after_the_stop_reason_broke_nothing() -> None:
    with ReplayServer([sse(*SAY_OK, done=False, then="drop")]) as server:
        assert await text_of(OpenAIChatModel("m", base_url=server.url)) == "ok"


@pytest.mark.anyio
async def test_silence_in_the_stream_is_a_network_error() -> None:
    with ReplayServer([sse(piece(content="Here is "), done=False, then="hang")]) as server:
        with pytest.raises(ModelError, match=r"sent nothing for 0\.2 s") as caught:
            await text_of(OpenAIChatModel("m", base_url=server.url))
        assert caught.value.category is ErrorCategory.NETWORK


@pytest.mark.anyio
async def test_silence_after_the_stop_reason_ends_the_message() -> None:
    with ReplayServer([sse(*SAY_OK, done=False, then="hang")]) as server:
        assert await text_of(OpenAIChatModel("m", base_url=server.url)) == "ok"


@pytest.mark.anyio
async def test_the_first_byte_may_have_a_limit_of_its_own() -> None:
    with ReplayServer([Answer(then="hang")]) as server:
        model = OpenAIChatModel("m", base_url=server.url, first_byte_timeout_s=0.4)
        with pytest.raises(ModelError, match=r"0\.4 s"):
            await text_of(model)


@pytest.mark.anyio
async def test_a_cancelled_request_hangs_up() -> None:
    with ReplayServer([sse(piece(content="Here is "), done=False, then="hang")]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        with anyio.move_on_after(0.2) as scope:
            await ask_model(make_request(model))
        assert scope.cancelled_caught
        assert await anyio.to_thread.run_sync(server.hung_up.wait, 5)


@pytest.mark.anyio
async def test_a_stream_that_is_left_hangs_up() -> None:
    with ReplayServer([sse(piece(content="Here is "), done=False, then="hang")]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        async with aclosing(model.stream(make_request(model))) as deltas:
            assert await anext(deltas) == TextDelta("Here is ")
        assert await anyio.to_thread.run_sync(server.hung_up.wait, 5)


@pytest.mark.anyio
async def test_two_requests_at_once() -> None:
    with ReplayServer([OK]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        async with model, anyio.create_task_group() as group:
            group.start_soon(text_of, model)
            group.start_soon(text_of, model)
        assert len(server.requests) == 2


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("entered", [True, False])
def test_loop_01_one_model_in_three_event_loops(backend: str, entered: bool) -> None:
    async def run() -> str:
        if not entered:
            return await text_of(model)
        async with model:
            return await text_of(model)

    with ReplayServer([OK]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        assert [anyio.run(run, backend=backend) for _ in range(3)] == ["ok"] * 3


@pytest.mark.anyio
async def test_the_key_is_asked_for_anew_for_each_request() -> None:
    keys = iter(["one", "two"])
    with ReplayServer([OK]) as server:
        model = OpenAIChatModel("m", base_url=server.url, api_key=lambda: next(keys))
        async with model:
            await text_of(model)
            await text_of(model)
        sent = [headers["authorization"] for headers in server.headers]
    assert sent == ["Bearer one", "Bearer two"]


@pytest.mark.anyio
async def test_the_vendors_own_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplayServer([OK]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
        assert await text_of(OpenAIChatModel("m")) == "ok"
        assert server.headers[0]["authorization"] == "Bearer from-the-environment"


@pytest.mark.anyio
async def test_no_key_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        await text_of(OpenAIChatModel("m"))
    assert caught.value.category is ErrorCategory.AUTH


def test_a_base_url_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'localhost:80'"):
        OpenAIChatModel("m", base_url="localhost:80")


@pytest.mark.anyio
async def test_it_conforms() -> None:
    usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 4}}
    hello = (piece(content="Hello, "), piece(content="you."), piece("stop"), usage)
    without_tools = [case for case in CASES if "tool" not in case and "result" not in case]
    with ReplayServer([sse(*hello)]) as server:
        await check_model(lambda: OpenAIChatModel("m", base_url=server.url), cases=without_tools)
