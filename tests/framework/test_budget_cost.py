"""Limits on what a run costs, in US dollars."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from callboard import Budget, Outcome, RunFailed, Usage
from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import ModelAttempted
from callboard.messages import NO_USAGE
from callboard.model import Purpose
from callboard.prices import list_price
from callboard.testing import ScriptedModel, call, say
from tests.framework.kit import agent_of, assert_replays, echo

TOKENS = Usage(input_tokens=1_000, output_tokens=100)
TURN = say(call("echo", x="a"), usage=TOKENS)


def cent(model: str, usage: Usage) -> float | None:
    """A cent a thousand tokens of input."""
    return None if usage.input_tokens is None else usage.input_tokens / 100_000


def varied(n: int) -> list[Any]:
    return [say(call("echo", x=str(i)), usage=TOKENS) for i in range(n)]


@pytest.mark.anyio
async def test_a_limit_on_the_cost_ends_the_run_with_a_summary() -> None:
    budget = Budget(cost=0.03, prices=cent)
    agent, model = agent_of([*varied(3), say("sum", usage=TOKENS)], echo, budget=budget)
    reply = await agent.run("go")
    assert (reply.outcome, reply.limit, reply.text) == (Outcome.BUDGET, "cost=0.03", "sum")
    assert reply.cost == pytest.approx(0.04)
    model.assert_complete()
    assert_replays(agent)


@pytest.mark.anyio
async def test_each_run_has_its_own_cost() -> None:
    said = say("done", usage=TOKENS)
    agent, _ = agent_of([said, said], budget=Budget(cost=0.5, prices=cent))
    assert [(await agent.run("go")).cost for _ in range(2)] == [0.01, 0.01]


@pytest.mark.anyio
async def test_prices_alone_tell_the_cost_and_limit_nothing() -> None:
    agent, _ = agent_of([say("done", usage=TOKENS)], budget=Budget(prices=cent))
    reply = await agent.run("go")
    assert (reply.outcome, reply.cost) == (Outcome.FINISHED, 0.01)


@pytest.mark.anyio
async def test_without_a_source_of_prices_the_cost_is_unknown_and_not_zero() -> None:
    agent, _ = agent_of([say("done", usage=TOKENS)])
    assert (await agent.run("go")).cost is None


@pytest.mark.anyio
async def test_a_model_of_unknown_price_is_refused_before_it_is_asked() -> None:
    agent, model = agent_of(["done"], budget=Budget(cost=1.0))
    with pytest.raises(RunFailed, match=r"price of 'scripted' is not known.* prices="):
        await agent.run("go")
    assert model.requests == []


@pytest.mark.anyio
async def test_an_answer_without_usage_is_refused_where_a_limit_needs_it() -> None:
    agent, _ = agent_of(["done"], budget=Budget(cost=1.0, prices=cent))
    with pytest.raises(RunFailed, match="what an answer of 'scripted' cost is not known"):
        await agent.run("go")


@pytest.mark.anyio
async def test_an_answer_without_usage_is_taken_where_nothing_is_limited() -> None:
    agent, _ = agent_of(["done"], budget=Budget(prices=cent))
    reply = await agent.run("go")
    assert (reply.text, reply.cost) == ("done", None)


@pytest.mark.parametrize("price", [float("nan"), -1.0, None])
@pytest.mark.anyio
async def test_what_is_no_price_is_unknown(price: float | None) -> None:
    agent, _ = agent_of(["done"], budget=Budget(cost=1.0, prices=lambda model, usage: price))
    with pytest.raises(RunFailed, match="is not known"):
        await agent.run("go")


@pytest.mark.anyio
async def test_prices_that_fail_later_lose_no_record() -> None:
    def failing(model: str, usage: Usage) -> float:
        return 0.0 if not usage.input_tokens else 1 / 0

    agent, _ = agent_of([TURN], echo, budget=Budget(cost=1.0, prices=failing))
    with pytest.raises(RunFailed, match="is not known"):
        await agent.run("go")
    assert agent._conversation.state.use.usage == TOKENS


@pytest.mark.anyio
async def test_the_price_of_a_known_model_is_on_the_list() -> None:
    model = ScriptedModel([say("done", usage=TOKENS)], name="openai:gpt-5")
    reply = await ReActAgent(model=model, budget=Budget(cost=1.0)).run("go")
    assert reply.cost == pytest.approx(1_000 * 1.25e-6 + 100 * 10e-6)


def test_cached_tokens_are_part_of_the_input_and_cheaper() -> None:
    plain = list_price("openai:gpt-5", TOKENS)
    cached = list_price("openai:gpt-5", TOKENS + Usage(cached_tokens=500))
    assert plain is not None
    assert cached is not None
    assert 0 < cached < plain


@pytest.mark.parametrize(
    "model", ["openai:nope", "nope:gpt-5", "nope", "scripted", "", ":", "openai:", "gpt-5:x"]
)
def test_a_model_that_is_not_on_the_list_has_no_price(model: str) -> None:
    assert list_price(model, TOKENS) is None


@pytest.mark.parametrize(
    "usage",
    [NO_USAGE, Usage(input_tokens=5), Usage(input_tokens=5, output_tokens=1, cached_tokens=9)],
)
def test_usage_that_is_not_known_has_no_price(usage: Usage) -> None:
    assert list_price("openai:gpt-5", usage) is None


def test_a_model_on_this_machine_is_free() -> None:
    assert list_price("local:qwen3", NO_USAGE) == 0.0


def test_a_limit_without_a_price_list_names_the_extra() -> None:
    """In an interpreter of its own, where the package cannot be found."""
    code = "import sys; sys.modules['genai_prices'] = None; import callboard; callboard.Budget("
    told = subprocess.run(
        [sys.executable, "-c", f"{code}prices=max); callboard.Budget(cost=1.0)"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "MissingExtra: 'genai-prices' is not installed" in told.stderr
    assert "callboard[cost]" in told.stderr


@pytest.mark.parametrize("cost", [0.0, -1.0])
def test_a_limit_is_above_zero(cost: float) -> None:
    with pytest.raises(ConfigurationError, match=r"Budget\(cost="):
        Budget(cost=cost, prices=cent)


def test_the_cost_of_an_attempt_is_kept_in_its_record() -> None:
    record = decode(encode(ModelAttempted("m", Purpose.ANSWER, "complete", cost=0.25)))
    assert isinstance(record, ModelAttempted)
    assert record.cost == 0.25


def test_a_record_that_was_written_without_a_cost_is_read() -> None:
    data = encode(ModelAttempted("m", Purpose.ANSWER, "complete")).replace(b',"cost":null', b"")
    assert decode(data) == ModelAttempted("m", Purpose.ANSWER, "complete")
