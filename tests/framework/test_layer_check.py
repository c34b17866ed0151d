"""`check_layer` passes layers that keep the laws and tells which law a broken one breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, SealedCall, Verdict
from callboard.composition import replaces
from callboard.errors import CompositionError, ConfigurationError
from callboard.journaling.records import Observed
from callboard.messages import AssistantMessage, Observation, ToolCall
from callboard.model import ModelRequest, Purpose
from callboard.replies import Prompt, Reply
from callboard.testing import check_layer
from callboard.testing.layer_probes import (
    AuditProbe,
    GuardProbe,
    MaskProbe,
    RetryProbe,
    RewriteProbe,
)
from callboard.tooling.tools import Tool
from tests.framework import broken_layers

FEW = 12  # orders, where one is enough to see a layer break its law


class QuietMixin(ReActAgent):
    """Has every step and changes nothing; writes facts of its own."""

    async def reply(self, prompt: Prompt) -> Reply:
        return await super().reply(prompt)

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        return await super()._reasoning(request)

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        await self._record("quiet", {"call": call.id})
        return verdict

    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        return await super()._summarizing(request)

    def _committing(self, record: Any) -> Any:
        return super()._committing(record)

    def _tools(self) -> Sequence[Tool]:
        return super()._tools()


class AskingMixin(ReActAgent):
    """Asks about one call, changes another, and refuses a third."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        if call.id == "apple":
            call = call.with_arguments({"text": "apple pie"})
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and call.id == "banana":
            return verdict.ask("is it ripe?")
        return Deny("no") if call.id == "later" else verdict


class PatientMixin(ReActAgent):
    """Waits for an hour around each call; its limit must be given."""

    def __init__(self, *, wait_s: float, **rest: Any) -> None:
        super().__init__(**rest)
        self._patient_wait_s = wait_s

    async def _acting(self, call: SealedCall) -> Observation:
        await anyio.sleep(self._patient_wait_s)
        return await super()._acting(call)


class CacheMixin(ReActAgent):
    @replaces
    async def _acting(self, call: SealedCall) -> Observation:
        return Observation.of("cached") if call.name == "note" else await super()._acting(call)


class RedactingMixin(ReActAgent):
    def _committing(self, record: Any) -> Any:
        if isinstance(record, Observed) and "noted" in record.observation.text:
            record = replace(record, observation=Observation.of("[gone]"))
        return super()._committing(record)


@pytest.mark.parametrize("layer", [QuietMixin, AskingMixin, CacheMixin, RedactingMixin])
def test_a_layer_that_keeps_the_laws_passes(layer: type[ReActAgent]) -> None:
    check_layer(layer, orders=60)


def test_all_orders_of_a_layer_with_the_probes_pass() -> None:
    check_layer(QuietMixin)


@pytest.mark.parametrize("probe", [AuditProbe, GuardProbe, MaskProbe, RetryProbe, RewriteProbe])
def test_a_probe_is_a_layer_that_keeps_the_laws(probe: type[ReActAgent]) -> None:
    """Its subclass, since a class cannot stand in its own stack twice."""
    check_layer(type("Own", (probe,), {}), orders=FEW)


class JudgingMixin(ReActAgent):
    """Asks the model about each of its answers, without tools."""

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        message = await super()._reasoning(request)
        bare = replace(request, offer=None, purpose=Purpose.JUDGEMENT)
        judgement = await super()._reasoning(bare)
        assert judgement.text == "done"
        return message


def test_a_layer_may_ask_the_model_questions_of_its_own() -> None:
    check_layer(JudgingMixin, orders=FEW)


def test_several_layers_are_checked_together() -> None:
    check_layer(AskingMixin, RedactingMixin, orders=FEW)


def test_make_gives_the_keywords_and_waiting_costs_no_time() -> None:
    check_layer(PatientMixin, make=lambda: {"wait_s": 3600.0}, orders=FEW)


@pytest.mark.parametrize(
    ("layer", "law", "fact"),
    [
        (
            broken_layers.SkipsTheGuard,
            "every layer inside is asked",
            "_deciding never came to the root",
        ),
        (broken_layers.SkipsTheMask, "every layer inside is asked", "not through super()._acting"),
        (broken_layers.RunsItself, "every layer inside is asked", "not through super()._acting"),
        (
            broken_layers.KeepsRecordsBack,
            "every layer inside is asked",
            "Observed: _committing never came",
        ),
        (broken_layers.ChangesAfterSealing, "what was decided is what runs", "another object"),
        (
            broken_layers.RewritesInActing,
            "what was decided is what runs",
            "not the object that was decided",
        ),
        (
            broken_layers.AsksAboutAnother,
            "what was decided is what runs",
            "about what would not run",
        ),
        (
            broken_layers.SwallowsDenials,
            "a denial stays a denial",
            "a guard said 'this text is forbidden'",
        ),
        (broken_layers.AsksAboutTheDenied, "a denial stays a denial", "a guard said"),
        (broken_layers.HidesDenials, "a denial stays a denial", "its result says ok"),
        (
            broken_layers.RewritesByCount,
            "deciding twice gives the same",
            'first Proceed with note {"text":',
        ),
        (broken_layers.SaysOk, "an ok means that the tool ran", "nothing ran"),
        (
            broken_layers.ChangesRecordsLate,
            "a record changes on its way in only",
            "after super()._committing",
        ),
        (
            broken_layers.KeepsTheCallOnSelf,
            "calls that run side by side do not mix",
            "speaks of call",
        ),
        (broken_layers.SharesACounter, "two agents share nothing", "SharesACounter._seen changed"),
        (broken_layers.JudgesGoingIn, "every legal order refuses the same", "a draft: refused"),
        (
            broken_layers.SwallowsKeywords,
            "a misspelt keyword is a TypeError",
            "misspelt_keyword=1 was taken",
        ),
        (broken_layers.MuttersAboutKeywords, "a misspelt keyword is", "something is wrong"),
        (broken_layers.Hangs, "the run ends with a reply", "it hangs"),
        (broken_layers.Fails, "the run ends with a reply", "no idea"),
    ],
)
def test_a_broken_layer_fails_with_its_law(layer: type[ReActAgent], law: str, fact: str) -> None:
    with pytest.raises(AssertionError) as failure:
        check_layer(layer, orders=FEW)
    told = str(failure.value)
    assert told.startswith(f"{layer.__name__} breaks a law: {law}")
    assert fact in told


def test_a_failure_tells_the_remedy_and_the_order() -> None:
    with pytest.raises(AssertionError, match=r"in the order (\w+ > )*SaysOk.*\n.*@replaces"):
        check_layer(broken_layers.SaysOk, orders=FEW)


def test_a_factory_that_gives_one_object_twice_is_told_apart() -> None:
    class HoldingMixin(ReActAgent):
        def __init__(self, *, held: list[str], **rest: Any) -> None:
            super().__init__(**rest)
            self._holding_held = held

        async def _acting(self, call: SealedCall) -> Observation:
            return await super()._acting(call)

    one: list[str] = []
    with pytest.raises(AssertionError, match=r"self\._holding_held is one object in both"):
        check_layer(HoldingMixin, make=lambda: {"held": one}, orders=FEW)
    check_layer(HoldingMixin, make=lambda: {"held": []}, orders=FEW)


class OutsideMixin(ReActAgent):
    goes_outside = (QuietMixin,)

    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


def test_orders_that_a_layer_forbids_are_passed_over() -> None:
    check_layer(OutsideMixin, QuietMixin, orders=FEW)


def test_layers_without_any_legal_order_are_refused() -> None:
    class StubbornMixin(ReActAgent):
        goes_outside = (GuardProbe,)

        async def _acting(self, call: SealedCall) -> Observation:
            return await super()._acting(call)

    class InsideMixin(StubbornMixin): ...

    guard_last = type("GuardLast", (GuardProbe,), {"goes_outside": (StubbornMixin,)})
    with pytest.raises(CompositionError, match="no order"):
        check_layer(InsideMixin, guard_last, orders=FEW)


@pytest.mark.parametrize("wrong", [(), (ReActAgent,), (int,)])
def test_what_is_no_layer_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigurationError, match="no layer|one layer"):
        check_layer(*wrong)


def test_a_layer_whose_keywords_are_missing_asks_for_make() -> None:
    with pytest.raises(ConfigurationError, match=r"'wait_s': give its keywords.*make="):
        check_layer(PatientMixin)


def test_what_the_kit_brings_itself_is_refused_from_make() -> None:
    with pytest.raises(ConfigurationError, match=r"make= gives \['tools'\]"):
        check_layer(QuietMixin, make=lambda: {"tools": []})


@pytest.mark.anyio
async def test_inside_a_running_event_loop_it_says_so() -> None:
    run: Callable[..., None] = check_layer
    with pytest.raises(ConfigurationError, match="outside of one"):
        run(QuietMixin)
