"""Agents that share a limiter keep to it together: first come, first served."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest

from callboard import (
    AssistantMessage,
    CompositionError,
    ModelError,
    ModelRequest,
    ModelSettings,
    ReActAgent,
    RunFailed,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    UserMessage,
)
from callboard.errors import ErrorCategory
from callboard.testing import (
    ScriptedModel,
    call,
    check_layer,
    error,
    pause,
    stream,
    usage,
    virtual_backend,
)
from callboard.testing.script import ScriptItem
from callboard_mixins import RateLimit, RateLimiter, RateLimitMixin, RetryMixin, RetryPolicy
from callboard_mixins.token_estimate import estimate
from tests.mixins.kit import png, warnings, watched

pytestmark = pytest.mark.anyio

MANY = error("slow down", category="rate_limited", status=429, retry_after_s=30.0)


class Limited(RateLimitMixin, ReActAgent):
    """An agent with the layer under test."""


class Patient(RateLimitMixin, RetryMixin, ReActAgent):
    """One that also asks again."""


def limiter(**limits: Any) -> RateLimiter:
    return RateLimiter(others=RateLimit(**limits))


def agent_of(shared: RateLimiter, *script: ScriptItem, name: str = "scripted") -> Limited:
    return Limited(model=ScriptedModel(script, name=name), rate_limiter=shared)


async def all_of(*runs: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(run)


async def ends(*agents: ReActAgent) -> list[float]:
    """When the run of each agent ended, from now; they begin in this order."""
    begun = anyio.current_time()
    ended: dict[int, float] = {}

    async def run(at: int) -> None:
        await anyio.sleep(at / 1000)
        await agents[at].run("go")
        ended[at] = anyio.current_time() - begun

    await all_of(*[partial(run, at) for at in range(len(agents))])
    return [round(ended[at], 1) for at in range(len(agents))]


def test_the_layer_keeps_the_laws() -> None:
    check_layer(RateLimitMixin, orders=60)


async def test_requests_per_minute_are_shared_by_agents() -> None:
    shared = limiter(requests_per_minute=2)
    assert await ends(*[agent_of(shared, "ok") for _ in range(5)]) == [0, 0, 60, 60, 120]


async def test_each_model_is_counted_for_itself() -> None:
    shared = limiter(requests_per_minute=1)
    agents = agent_of(shared, "ok", name="a"), agent_of(shared, "ok", name="b")
    assert await ends(*agents) == [0, 0]


async def test_a_limit_can_be_for_one_model_only() -> None:
    shared = RateLimiter({"a": RateLimit(requests_per_minute=1)})
    agents = [agent_of(shared, "ok", name=name) for name in "abab"]
    assert await ends(*agents) == [0, 0, 60, 0]


async def test_concurrency_bounds_the_answers_that_are_under_way() -> None:
    shared = limiter(concurrency=2)
    slow = stream("a", pause(10), "b")
    assert await ends(*[agent_of(shared, slow) for _ in range(5)]) == [10, 10, 20, 20, 30]


async def test_a_place_can_be_held_until_the_first_delta_only() -> None:
    shared = limiter(concurrency=1, held_until="first_delta")
    slow = stream(pause(1), "a", pause(10), "b")
    assert await ends(*[agent_of(shared, slow) for _ in range(3)]) == [11, 12, 13]


async def test_no_place_is_held_while_a_tool_runs() -> None:
    async def rest() -> str:
        """Rest."""
        await anyio.sleep(100)
        return "rested"

    shared = limiter(concurrency=1)
    resting = Limited(model=ScriptedModel([call("rest"), "ok"]), tools=[rest], rate_limiter=shared)
    assert await ends(resting, agent_of(shared, "ok")) == [100, 0]


async def test_tokens_per_minute_count_what_was_used() -> None:
    shared = limiter(tokens_per_minute=100)
    agents = [agent_of(shared, stream("ok", usage(40, 20))) for _ in range(3)]
    assert await ends(*agents) == [0, 0, 60]


async def test_tokens_are_estimated_before_they_are_known() -> None:
    shared = limiter(tokens_per_minute=120)
    model = ScriptedModel(then="ok")
    said = [UserMessage.of("x" * 250), AssistantMessage.of("y")]
    agents = [Limited(model=model, messages=said, rate_limiter=shared) for _ in range(2)]
    assert await ends(*agents) == [0, 60]


def test_an_estimate_counts_text_thinking_calls_media_and_the_answer() -> None:
    answer = AssistantMessage(
        content=(
            TextBlock(text="x" * 40),
            ThinkingBlock(text="é" * 20),
            ToolCall(id="a", name="abcd", raw="x" * 36),
            png(),
        )
    )
    settings = ModelSettings(max_tokens=500)
    request = ModelRequest(model=ScriptedModel(), messages=[answer], settings=settings)
    assert estimate(request) == 4 + 10 + 10 + 10 + 1000 + 500


async def test_turns_come_in_the_order_of_asking() -> None:
    shared = limiter(concurrency=1)
    order: list[int] = []

    def answering(number: int) -> ScriptItem:
        def answer(_: object) -> ScriptItem:
            order.append(number)
            return stream(pause(1), "ok")

        return answer

    await ends(*[agent_of(shared, answering(number)) for number in range(6)])
    assert order == list(range(6))


async def test_who_is_cancelled_while_waiting_takes_no_place_and_lets_the_next_in() -> None:
    shared = limiter(concurrency=1)
    slow = agent_of(shared, stream("a", pause(10), "b"))
    impatient, next_one = agent_of(shared, "never"), agent_of(shared, "ok")

    async def run_impatient() -> None:
        await anyio.sleep(0.001)
        with anyio.move_on_after(1):
            await impatient.run("go")

    ended: list[float] = []

    async def run_others() -> None:
        ended.extend(await ends(slow, next_one))

    await all_of(run_impatient, run_others)
    assert ended == [10, 10]
    assert not impatient.messages[1:]


async def test_a_cancelled_answer_gives_its_place_back() -> None:
    shared = limiter(concurrency=1)
    with anyio.move_on_after(1):
        await agent_of(shared, stream("a", pause(10), "b")).run("go")
    assert await ends(agent_of(shared, "ok")) == [0]


async def test_a_failed_answer_gives_its_place_back() -> None:
    shared = limiter(concurrency=1)
    with pytest.raises(RunFailed):
        await agent_of(shared, stream("a", error("no", category="auth"))).run("go")
    assert await ends(agent_of(shared, "ok")) == [0]


async def test_too_many_requests_pause_all_who_share_the_limiter() -> None:
    shared = limiter()
    with pytest.raises(RunFailed):
        await agent_of(shared, MANY).run("go")
    assert await ends(*[agent_of(shared, "ok") for _ in range(3)]) == [30, 30, 30]


async def test_without_a_limiter_the_agents_of_the_process_share_pauses() -> None:
    own = ScriptedModel([MANY, "ok"], name="a model of this test only")
    one, two = Limited(model=own), Limited(model=own)
    with pytest.raises(RunFailed):
        await one.run("go")
    assert await ends(two) == [30]


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    shared = limiter()
    lane = shared.lane("scripted")
    lane.pause(30.0)
    lane.pause(1.0)
    assert await ends(agent_of(shared, "ok")) == [30]


async def test_nobody_takes_a_place_that_is_just_free_before_those_who_wait() -> None:
    lane = limiter(concurrency=1).lane("scripted")
    order: list[str] = []

    async def wait() -> None:
        await lane.enter("scripted", 0)
        order.append("who waited")
        lane.leave()

    await lane.enter("scripted", 0)
    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.sleep(1)
        lane.leave()
        await lane.enter("scripted", 0)
        order.append("who came late")
    assert order == ["who waited", "who came late"]


async def test_a_pause_without_a_time_takes_pause_s() -> None:
    shared = limiter(pause_s=7)
    with pytest.raises(RunFailed):
        await agent_of(shared, error("slow down", category="rate_limited")).run("go")
    assert await ends(agent_of(shared, "ok")) == [7]


async def test_other_failures_pause_nobody() -> None:
    shared = limiter()
    with pytest.raises(RunFailed):
        await agent_of(shared, error("busy", category="overloaded")).run("go")
    assert await ends(agent_of(shared, "ok")) == [0]


async def test_who_would_have_to_wait_too_long_gives_up_at_once() -> None:
    shared = limiter(requests_per_minute=1, longest_wait_s=20)
    await agent_of(shared, "ok").run("go")
    begun = anyio.current_time()
    with pytest.raises(RunFailed, match="no room for 20 s") as failed:
        await agent_of(shared, "never").run("go")
    assert anyio.current_time() == begun
    assert isinstance(failed.value.__cause__, ModelError)
    assert failed.value.__cause__.category is ErrorCategory.RATE_LIMITED


async def test_who_waits_too_long_for_a_place_gives_up() -> None:
    shared = limiter(concurrency=1, longest_wait_s=5)
    slow, late = agent_of(shared, stream("a", pause(10), "b")), agent_of(shared, "never")
    begun = anyio.current_time()

    async def run_late() -> None:
        await anyio.sleep(1)
        with pytest.raises(RunFailed, match="no room for 5 s"):
            await late.run("go")
        assert anyio.current_time() - begun == pytest.approx(6)

    await all_of(partial(slow.run, "go"), run_late)


async def test_watchers_are_told_of_a_request_that_waits() -> None:
    shared = limiter(requests_per_minute=1)
    _, first = await watched(agent_of(shared, "ok"))
    _, second = await watched(agent_of(shared, "ok"))
    assert warnings(first) == []
    assert warnings(second) == ["scripted has no room now: the request waits for its turn"]


async def test_qp_56_no_place_is_held_while_an_attempt_waits_to_be_made() -> None:
    shared = limiter(concurrency=1)
    busy = error("busy", category="overloaded", retry_after_s=50.0)
    model = ScriptedModel([stream("a", busy), "ok"])
    patient = Patient(model=model, rate_limiter=shared, retry_policy=RetryPolicy())
    assert await ends(patient, agent_of(shared, "ok")) == [50, 0]


async def test_who_found_no_room_is_not_tried_again() -> None:
    shared = limiter(requests_per_minute=1, longest_wait_s=20)
    patient = Patient(model=ScriptedModel(["ok"]), rate_limiter=shared)
    await patient.run("go")
    begun = anyio.current_time()
    with pytest.raises(RunFailed, match="no room"):
        await patient.run("go")
    assert anyio.current_time() == begun


async def test_each_attempt_counts() -> None:
    shared = limiter(requests_per_minute=1)
    busy = error("busy", category="overloaded")
    patient = Patient(model=ScriptedModel([busy, busy, "ok"]), rate_limiter=shared)
    assert await ends(patient) == [120]


def test_the_layer_must_stand_outside_of_the_retries() -> None:
    with pytest.raises(CompositionError, match="RateLimitMixin must go outside RetryMixin"):
        type("Wrong", (RetryMixin, RateLimitMixin, ReActAgent), {})


@pytest.mark.parametrize("backends", [("asyncio", "trio"), ("trio", "asyncio"), ("trio", "trio")])
def test_what_was_sent_counts_on_the_next_event_loop_too(backends: tuple[str, str]) -> None:
    shared = limiter(requests_per_minute=1)
    took: list[float] = []

    async def run() -> None:
        begun = anyio.current_time()
        await agent_of(shared, "ok").run("go")
        took.append(anyio.current_time() - begun)

    for name in backends:
        backend, options = virtual_backend(name)
        anyio.run(run, backend=backend, backend_options=options)
    assert took == [pytest.approx(0, abs=1), pytest.approx(60, abs=1)]
