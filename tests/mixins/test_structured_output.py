"""The answer has the wanted form, or the run fails and says what was wrong; bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_type

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from callboard import InMemoryJournal, Outcome, Proceed, ReActAgent, RunFailed, Verdict, tool
from callboard.actors.system import ActorSystem
from callboard.errors import ConfigurationError
from callboard.messages import ToolCall, ToolResultMessage
from callboard.model import Capabilities
from callboard.testing import ScriptedModel, call, check_layer, finish, say, stream
from callboard.testing.script import ScriptItem
from callboard_mixins import (
    CompactionMixin,
    CompactionPolicy,
    OutputInvalid,
    StructuredOutputMixin,
)

pytestmark = pytest.mark.anyio


class Weather(BaseModel):
    """What is wanted."""

    city: str
    degrees: int = Field(ge=-90, le=60)


class Passed(TypedDict):
    """Another form."""

    passed: bool


@dataclass
class Point:
    """And another."""

    x: int
    y: int


class Forecaster(StructuredOutputMixin[Weather], ReActAgent):
    """An agent with the layer under test."""


class AskingForecaster(StructuredOutputMixin[Weather], ReActAgent):
    """One that asks a human about the tool `look`."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        asks = isinstance(verdict, Proceed) and verdict.call.name == "look"
        return verdict.ask("may it?") if asks and isinstance(verdict, Proceed) else verdict


@tool(effect="pure")
async def look(city: str) -> str:
    """Look out of the window."""
    return f"snow in {city}"


def agent_of(script: Sequence[ScriptItem], **options: Any) -> tuple[Forecaster, ScriptedModel]:
    model = ScriptedModel(script)
    options.setdefault("output", Weather)
    return Forecaster(model=model, tools=[look], **options), model


def final(**arguments: Any) -> Any:
    return call("final_answer", **arguments)


def test_the_layer_keeps_the_laws() -> None:
    make = {"output": str, "output_way": "prompted"}
    check_layer(StructuredOutputMixin, make=lambda: dict(make), orders=60)


async def test_the_answer_is_given_by_a_tool_and_ends_the_run() -> None:
    agent, model = agent_of([call("look", city="Oslo"), final(city="Oslo", degrees=-3)])
    reply = await agent.run("How is it?")
    assert_type(reply.output, Weather | None)
    assert reply.output == Weather(city="Oslo", degrees=-3)
    assert reply.outcome is Outcome.FINISHED
    assert len(model.requests) == 2


async def test_a_wrong_answer_is_corrected_with_what_was_wrong() -> None:
    agent, model = agent_of([final(city="Oslo", degrees=99), final(city="Oslo", degrees=9)])
    reply = await agent.run("How is it?")
    assert reply.output == Weather(city="Oslo", degrees=9)
    assert "60" in model.requests[1].messages[-1].text


async def test_so_01_corrections_are_bounded_and_the_failure_names_the_last_problem() -> None:
    wrong: list[ScriptItem] = [final(passed="perhaps")] * 9
    model = ScriptedModel(wrong)
    agent: StructuredOutputMixin[Passed] = StructuredOutputMixin(model=model, output=Passed)
    with pytest.raises(RunFailed) as caught:
        await agent.run("go")
    assert isinstance(caught.value.__cause__, OutputInvalid)
    assert "passed" in caught.value.__cause__.problem
    assert len(model.requests) == 3


async def test_a_text_in_place_of_the_tool_is_corrected_too() -> None:
    agent, model = agent_of(["It is cold.", final(city="Oslo", degrees=-3)])
    assert (await agent.run("go")).output == Weather(city="Oslo", degrees=-3)
    assert "final_answer was not called" in model.requests[1].messages[-1].text


async def test_texts_alone_are_bounded() -> None:
    agent, model = agent_of(["no"] * 9, output_corrections=1)
    with pytest.raises(RunFailed, match="final_answer was not called"):
        await agent.run("go")
    assert len(model.requests) == 2


async def test_other_calls_beside_the_answer_run_and_the_answer_counts() -> None:
    both = say(call("look", city="Oslo"), final(city="Oslo", degrees=1))
    agent, _ = agent_of([both, "That is it."])
    assert (await agent.run("go")).output == Weather(city="Oslo", degrees=1)


async def test_the_provider_s_own_way_sends_the_schema() -> None:
    agent, model = agent_of(['{"city": "Oslo", "degrees": 2}'], output_way="native")
    assert (await agent.run("go")).output == Weather(city="Oslo", degrees=2)
    schema = model.requests[0].output_schema
    assert schema is not None
    assert list(schema["properties"]) == ["city", "degrees"]


async def test_telling_the_schema_reads_json_in_a_fence_and_corrects() -> None:
    fenced = '```json\n{"city": "Oslo", "degrees": 2}\n```'
    agent, model = agent_of(["cold", fenced], output_way="prompted", system_prompt="Be brief.")
    assert (await agent.run("go")).output == Weather(city="Oslo", degrees=2)
    assert model.requests[0].system.startswith("Be brief.")
    assert '"degrees"' in model.requests[0].system
    assert "the answer is no JSON" in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("output", "arguments", "value"),
    [
        (Passed, {"passed": True}, {"passed": True}),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (int, {"answer": 3}, 3),
        (list[int], {"answer": [1, 2]}, [1, 2]),
        ({"type": "object", "required": ["a"]}, {"a": 1}, {"a": 1}),
        ({"type": "string", "enum": ["yes", "no"]}, {"answer": "yes"}, "yes"),
    ],
)
async def test_other_types_and_schemas(
    output: Any, arguments: dict[str, Any], value: object
) -> None:
    agent: StructuredOutputMixin[Any] = StructuredOutputMixin(
        model=ScriptedModel([final(**arguments)]), output=output
    )
    assert (await agent.run("go")).output == value


async def test_a_run_that_ends_at_a_limit_has_no_output() -> None:
    agent, _ = agent_of([call("look", city="Oslo"), "I do not know."], max_iters=1)
    reply = await agent.run("go")
    assert (reply.outcome, reply.output) == (Outcome.MAX_ITERS, None)


async def test_a_refusal_is_a_refusal() -> None:
    agent, _ = agent_of([stream("I must not.", finish("refusal"))])
    reply = await agent.run("go")
    assert (reply.outcome, reply.output) == (Outcome.REFUSED, None)


async def test_each_run_has_an_answer_of_its_own() -> None:
    agent, _ = agent_of([final(city="Oslo", degrees=1), "no", final(city="Rome", degrees=20)])
    await agent.run("Oslo?")
    assert (await agent.run("Rome?")).output == Weather(city="Rome", degrees=20)


async def test_a_restart_in_the_middle_goes_on_and_resume_is_typed_too() -> None:
    journal = InMemoryJournal()
    first = AskingForecaster(
        model=ScriptedModel(["cold", call("look", "a", city="Oslo")]),
        tools=[look],
        journal=journal,
        output=Weather,
    )
    assert (await first.run("go")).outcome is Outcome.AWAITING_APPROVAL
    model = ScriptedModel([final(city="Oslo", degrees=0)])
    second = AskingForecaster(model=model, tools=[look], journal=journal, output=Weather)
    await second.opened()
    await second.approve(second.pending[0].id, by="ann")
    reply = await second.resume()
    assert_type(reply.output, Weather | None)
    assert reply.output == Weather(city="Oslo", degrees=0)
    third = AskingForecaster(model=ScriptedModel([]), tools=[look], journal=journal, output=Weather)
    assert (await third.resume()).output == Weather(city="Oslo", degrees=0)


async def test_the_record_of_the_run_holds_plain_json() -> None:
    journal = InMemoryJournal()
    agent, _ = agent_of([final(city="Oslo", degrees=1)], journal=journal)
    await agent.run("go")
    finished = [record for record in journal.records if record.kind == "run_finished"]
    assert json.loads(json.dumps(getattr(finished[0], "output"))) == {  # noqa: B009
        "city": "Oslo",
        "degrees": 1,
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output_way": "magic"}, "output_way='magic' is none of tool, native, prompted"),
        ({"output_corrections": -1}, "output_corrections=-1"),
        ({"output": type("Unknown", (), {})}, "has no JSON schema"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        agent_of([], **options)


async def test_qp_12_what_is_said_beside_the_answer_is_the_text_of_the_reply() -> None:
    agent, model = agent_of([say("It is cold.", final(city="Oslo", degrees=-3))])
    reply = await agent.run("go")
    assert (reply.text, reply.output) == ("It is cold.", Weather(city="Oslo", degrees=-3))
    assert len(model.requests) == 1


async def test_qp_14_a_text_then_a_wrong_answer_then_a_right_one() -> None:
    wrong = final(city="Oslo", degrees="zz")
    agent, model = agent_of(["x", wrong, say("y", final(city="Oslo", degrees=4))])
    reply = await agent.run("go")
    assert (reply.text, reply.output) == ("y", Weather(city="Oslo", degrees=4))
    assert len(model.requests) == 3


class Renamed(BaseModel):
    """A field that goes by another name on the wire."""

    city: str = Field(alias="place")


async def test_a_field_with_an_alias_is_read_back() -> None:
    agent: StructuredOutputMixin[Renamed] = StructuredOutputMixin(
        model=ScriptedModel([final(place="Oslo")]), output=Renamed
    )
    reply = await agent.run("go")
    assert reply.output is not None
    assert reply.output.city == "Oslo"


class Compacted(CompactionMixin, StructuredOutputMixin[Weather], ReActAgent):
    """Compacts outside of the form."""


async def test_corrections_are_bounded_behind_a_compacted_view_too() -> None:
    wrong: list[ScriptItem] = [
        item for n in range(9) for item in (final(city="Oslo", degrees=100 + n), "a sum")
    ]
    policy = CompactionPolicy(at_tokens=1, keep_recent=1)
    model = ScriptedModel(wrong, then="a sum")
    agent = Compacted(model=model, output=Weather, compaction_policy=policy)
    with pytest.raises(RunFailed):
        await agent.run("go")
    answers = [one for one in model.requests if one.purpose == "answer"]
    assert len(answers) <= 4


async def test_a_stream_gives_the_type_too() -> None:
    agent, _ = agent_of([final(city="Oslo", degrees=1)])
    async with agent.stream("go") as events:
        told = [event async for event in events]
        reply = events.reply
    assert told
    assert reply is not None
    assert_type(reply.output, Weather | None)
    assert reply.output == Weather(city="Oslo", degrees=1)


def test_code_without_an_event_loop_gets_the_type_too() -> None:
    agent, _ = agent_of([final(city="Oslo", degrees=1)])
    reply = agent.run_sync("go")
    assert_type(reply.output, Weather | None)
    assert reply.output == Weather(city="Oslo", degrees=1)


async def test_an_ask_in_a_system_gives_the_type_too() -> None:
    agent, _ = agent_of([final(city="Oslo", degrees=1)])
    async with ActorSystem() as system:
        reply = await (await system.spawn(agent)).ask("go")
    assert reply.output == Weather(city="Oslo", degrees=1)


async def test_an_agent_above_gets_the_answer_as_json() -> None:
    inner, _ = agent_of([final(city="Oslo", degrees=1)])
    sky = inner.as_tool(name="sky", description="Looks at the sky.")
    outer = ReActAgent(model=ScriptedModel([call("sky", task="go"), "done"]), tools=[sky])
    await outer.run("go")
    result = outer.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.payload == {"city": "Oslo", "degrees": 1}


async def test_texts_and_wrong_calls_share_one_bound() -> None:
    wrong = final(city="Oslo", degrees=99)
    agent, model = agent_of([wrong, "no", wrong, "no", wrong, wrong])
    with pytest.raises(RunFailed, match="after 3 attempts"):
        await agent.run("go")
    assert len(model.requests) == 3


async def test_a_restart_counts_the_corrections_that_were() -> None:
    journal = InMemoryJournal()
    script: list[ScriptItem] = ["no", "no", call("look", "a", city="Oslo")]
    options: dict[str, Any] = {"tools": [look], "journal": journal, "output": Weather}
    first = AskingForecaster(model=ScriptedModel(script), **options)
    assert (await first.run("go")).outcome is Outcome.AWAITING_APPROVAL
    second = AskingForecaster(model=ScriptedModel(["no"]), **options)
    await second.opened()
    await second.approve(second.pending[0].id, by="ann")
    with pytest.raises(RunFailed, match="after 3 attempts"):
        await second.resume()


async def test_a_message_of_the_user_is_answered_with_all_corrections() -> None:
    wrong = final(city="Oslo", degrees=99)
    script: list[ScriptItem] = [wrong, wrong, final(city="Oslo", degrees=1)]
    agent, _ = agent_of([*script, *script])
    await agent.run("go")
    assert (await agent.run("again")).output == Weather(city="Oslo", degrees=1)


async def test_a_model_without_an_own_way_is_told_the_schema() -> None:
    model = ScriptedModel(
        ['{"city": "Oslo", "degrees": 2}'], capabilities=Capabilities(output_schema=False)
    )
    agent = Forecaster(model=model, output=Weather, output_way="native")
    assert (await agent.run("go")).output == Weather(city="Oslo", degrees=2)
    assert model.requests[0].output_schema is None
    assert '"degrees"' in model.requests[0].system


async def test_an_output_of_an_older_form_is_none_and_a_warning() -> None:
    journal = InMemoryJournal()
    agent, _ = agent_of([final(city="Oslo", degrees=1)], journal=journal)
    await agent.run("go")
    later: StructuredOutputMixin[Point] = StructuredOutputMixin(
        model=ScriptedModel([]), output=Point, journal=journal
    )
    assert (await later.resume()).output is None
