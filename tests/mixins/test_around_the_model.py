"""The layers around the model together: which orders are legal, and what holds in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import permutations
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import (
    CompositionError,
    ConfigurationError,
    ReActAgent,
    RunFailed,
    TextBlock,
    UserMessage,
)
from callboard.model import Capabilities
from callboard.testing import (
    ScriptedModel,
    check_layer,
    drop,
    eof,
    error,
    pause,
    stream,
    virtual_backend,
)
from callboard.testing.script import ScriptItem
from callboard_mixins import (
    FallbackMixin,
    MediaFilterMixin,
    RateLimit,
    RateLimiter,
    RateLimitMixin,
    RetryMixin,
    RetryPolicy,
)
from tests.mixins.kit import attempts, png, shown, watched

AROUND: tuple[type[ReActAgent], ...] = (FallbackMixin, RateLimitMixin, RetryMixin, MediaFilterMixin)
LEGAL = [
    order
    for order in permutations(AROUND)
    if order[0] is FallbackMixin and order.index(RateLimitMixin) < order.index(RetryMixin)
]
NONE = RateLimiter()


def built(order: tuple[type[ReActAgent], ...], *scripts: list[ScriptItem], **more: Any) -> Any:
    """An agent with the layers in this order; its second model takes no images."""
    own, other = (
        ScriptedModel(script, then="done", name=name, capabilities=Capabilities(images=name == "a"))
        for name, script in zip("ab", scripts, strict=True)
    )
    policy = RetryPolicy(attempts=2, first_wait_s=0.1)
    options: dict[str, Any] = {
        "model": own,
        "fallback_models": [other],
        "retry_policy": policy,
        **more,
    }
    return type("Stack", (*order, ReActAgent), {})(**options)


def whole() -> Mapping[str, Any]:
    limiter = RateLimiter(others=RateLimit(concurrency=1, requests_per_minute=3))
    return {"fallback_models": [ScriptedModel()], "rate_limiter": limiter}


def test_together_they_keep_the_laws() -> None:
    check_layer(*AROUND, make=whole, orders=40)


@pytest.mark.parametrize("order", list(permutations(AROUND)), ids=lambda _: "")
def test_only_the_orders_that_make_sense_can_be_written(
    order: tuple[type[ReActAgent], ...],
) -> None:
    bases: tuple[type, ...] = (*order, ReActAgent)
    if order in LEGAL:
        type("Stack", bases, {})
        return
    with pytest.raises(CompositionError, match="must go outside"):
        type("Stack", bases, {})


@pytest.mark.anyio
@pytest.mark.parametrize("order", LEGAL, ids=lambda _: "")
async def test_every_legal_order_does_the_same(order: tuple[type[ReActAgent], ...]) -> None:
    busy = error("busy", category="overloaded")
    refused = error("no images here: not supported", category="unsupported_media")
    agent = built(order, [refused, busy, stream("x", busy)], [busy, "done"])
    reply, events = await watched(agent, UserMessage(content=(TextBlock(text="see"), png())))
    assert attempts(agent) == [
        *[("a", "failed")] * 3,
        ("b", "failed"),
        ("b", "complete"),
    ]
    assert (reply.text, shown(events)) == ("done", "")


FAULTS: list[Any] = [
    error("busy", category="overloaded"),
    error("slow", category="rate_limited", retry_after_s=3.0),
    drop(),
    eof(),
]
WHERE = st.sampled_from(FAULTS)
ANSWERS = st.one_of(
    WHERE.map(lambda fault: fault if isinstance(fault, BaseException) else stream(fault)),
    st.tuples(st.text("ab", min_size=1), WHERE).map(lambda it: stream(*it)),
    st.text("ab", min_size=1).map(lambda text: stream(text, pause(1), text)),
)
SCRIPTS = st.lists(ANSWERS, max_size=6)


@settings(max_examples=60, deadline=None)
@given(SCRIPTS, SCRIPTS, st.sampled_from(LEGAL), st.sampled_from(["asyncio", "trio"]))
def test_whatever_breaks_nothing_is_shown_twice_lost_or_held(
    one: list[ScriptItem],
    two: list[ScriptItem],
    order: tuple[type[ReActAgent], ...],
    backend: str,
) -> None:
    """What is shown is the reply, each request has one record, and every place is given back."""
    name, options = virtual_backend(backend)
    run = partial(_run_broken, one, two, order)
    anyio.run(run, backend=name, backend_options=options)


async def _run_broken(
    one: list[ScriptItem], two: list[ScriptItem], order: tuple[type[ReActAgent], ...]
) -> None:
    limiter = RateLimiter(others=RateLimit(concurrency=1))
    agent = built(order, one, two, rate_limiter=limiter)
    models = (agent.state.model, *agent._fallback_models)
    try:
        reply, events = await watched(agent)
        if reply.message is not None:
            assert shown(events) in (reply.text, "")
    except RunFailed:
        pass
    assert len(attempts(agent)) == sum(len(model.requests) for model in models)
    assert [model.open_streams for model in models] == [0, 0]
    assert [limiter.lane(model.name)._running for model in models] == [0, 0]


@pytest.mark.parametrize(
    ("layer", "wrong"),
    [
        (RetryMixin, {"retry_policy": 3}),
        (RateLimitMixin, {"rate_limiter": RateLimit()}),
        (FallbackMixin, {"fallback_models": [ScriptedModel()], "fallback_policy": "run"}),
        (MediaFilterMixin, {"media_policy": "/tmp"}),
    ],
)
def test_what_a_layer_was_wrongly_given_is_named(
    layer: type[ReActAgent], wrong: dict[str, Any]
) -> None:
    keyword = list(wrong)[-1]
    with pytest.raises(ConfigurationError, match=rf"{keyword}=.* write {keyword}="):
        layer(model=ScriptedModel(), **wrong)


def test_a_limiter_wants_limits() -> None:
    wrong: Any = {"openai:gpt-5": 60}
    with pytest.raises(ConfigurationError, match=r"openai:gpt-5=60 is no RateLimit"):
        RateLimiter(wrong)
