"""Arguments, call ids and tool names, as the loop meets them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Verdict
from callboard.decide import ToolExecution
from callboard.events import ArgumentsRepaired, ToolStart
from callboard.messages import AssistantMessage, ToolCall
from callboard.testing import call, call_piece, finish, raw_call, say, stream
from callboard.tooling.tools import Tool, ToolContext, tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    echo,
    marks,
    results,
    shape,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio


async def constant(arguments: dict[str, Any], context: ToolContext) -> str:
    return "made"


async def ping() -> str:
    """Answer."""
    return "pong"


@pytest.mark.parametrize("streamed", [True, False])
async def test_arg_01_blank_arguments_are_none(streamed: bool) -> None:
    whole = say(raw_call("ping", "", id="a"), raw_call("ping", "  \n", id="b"))
    pieces = stream(call_piece("", id="a", name="ping"), call_piece("  \n", id="b", name="ping"))
    agent, _ = agent_of([pieces if streamed else whole, "done"], ping)
    await agent.run("go")
    assert shape(agent.messages)[2:4] == ["a: pong", "b: pong"]


async def test_arg_02_bad_argument_text_never_poisons_a_later_request() -> None:
    script: Script = [
        raw_call("ping", "", id="a"),
        say(raw_call("ping", '{"a": "tru', id="b"), stop="length"),
        "done",
    ]
    agent, model = agent_of(script, ping)
    await agent.run("go")
    answers = [m for m in model.requests[-1].messages if isinstance(m, AssistantMessage)]
    calls = [call for message in answers for call in message.calls]
    assert [json.loads(call.sendable_raw) for call in calls] == [{}, {}]
    assert calls[1].raw == '{"a": "tru'


async def test_arg_03_an_object_inside_a_string_is_unwrapped_once() -> None:
    seen: list[Any] = []

    async def report(shop: str, day: str) -> None:
        seen.append((shop, day))

    text = json.dumps(json.dumps({"shop": "A店", "day": "2025-03-23"}))
    agent, _ = agent_of([raw_call("report", text, id="a"), "done"], report)
    await agent.run("go")
    assert seen == [("A店", "2025-03-23")]


async def test_arg_04_one_parameter_sent_as_text_is_decoded_where_the_schema_says_so() -> None:
    seen: list[Any] = []

    async def plan(steps: list[dict[str, Any]], note: str) -> None:
        seen.append((steps, note))

    text = json.dumps({"steps": '[{"s":"a\nb"}]', "note": "[1,2]"})
    agent, _ = agent_of([raw_call("plan", text, id="a"), "done"], plan)
    _, events = await watched(agent)
    assert seen == [([{"s": "a\nb"}], "[1,2]")]
    assert any(isinstance(event, ArgumentsRepaired) for event in events)


async def test_arg_05_what_is_no_object_never_reaches_the_tool() -> None:
    texts = ["null", "[]", "1", '"x"', "true"]
    calls = [raw_call("echo", text, id=f"c{at}") for at, text in enumerate(texts)]
    agent, _ = agent_of([say(*calls), "done"], echo)
    assert (await agent.run("go")).text == "done"
    assert set(statuses(agent).values()) == {"invalid"}
    told = [result.text for result in results(agent).values()]
    assert "x: missing" in told[0]
    assert all("object" in text for text in told[1:])


@pytest.mark.parametrize("cut", ['{"path":"a.txt","text":"half of', '{"path":"a","text":""}'])
async def test_arg_07_a_call_that_the_output_limit_cut_is_never_run(cut: str) -> None:
    written: list[str] = []

    async def write(path: str, text: str) -> None:
        written.append(path)

    cut_off = stream(call_piece(cut, id="c1", name="write", index=0), finish("length"))
    agent, _ = agent_of([cut_off, "done"], write)
    assert (await agent.run("go")).text == "done"
    assert written == []
    assert "smaller parts" in results(agent)["c1"].text


async def test_arg_09_guard_and_tool_see_one_parsed_object() -> None:
    seen: list[Any] = []

    class Looking(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            seen.append(call.arguments["to"])
            return await super()._deciding(call)

    async def transfer(to: str, amount: float) -> None:
        seen.append(to)

    bad = ['{"to":"a","amount":NaN}', '{"to":"bob","to":"eve","amount":1}']
    calls = [raw_call("transfer", text) for text in [*bad, '{"to":"amy","amount":1}']]
    agent, _ = agent_of([say(*calls), "done"], transfer, kind=Looking)
    await agent.run("go")
    assert seen == ["amy", "amy"]
    assert list(statuses(agent).values()) == ["invalid", "invalid", "ok"]


async def test_pi_14_a_missing_argument_is_refused_by_name_and_the_raw_text_is_kept() -> None:
    agent, model = agent_of([raw_call("echo", '{ "y": 1 }', id="a"), "done"], echo)
    await agent.run("go")
    text = results(agent)["a"].text
    assert "echo" in text
    assert "x" in text
    assert '"y": 1' in text or '"y":1' in text
    assert len(model.requests) == 2
    answer = agent.messages[1]
    assert isinstance(answer, AssistantMessage)
    assert answer.calls[0].raw == '{ "y": 1 }'


async def test_qp_08_a_bad_argument_is_a_result_and_the_loop_goes_on() -> None:
    agent, _ = agent_of([call("echo", "a", y=1), "ok"], echo)
    assert (await agent.run("go")).text == "ok"
    assert statuses(agent) == {"a": "invalid"}


async def test_pi_16_old_argument_shapes_are_prepared_before_they_are_checked() -> None:
    seen: list[Any] = []

    def prepare(given: dict[str, Any]) -> dict[str, Any]:
        return {"edits": [given]} if "old" in given else given

    @tool(prepare=prepare)
    async def edit(edits: list[dict[str, str]]) -> None:
        seen.append(edits)

    agent, _ = agent_of([call("edit", old="a", new="b"), "done"], edit)
    await agent.run("go")
    assert seen == [[{"old": "a", "new": "b"}]]


async def test_pi_22_a_result_without_content_is_no_error() -> None:
    async def nothing() -> list[Any]:
        return []

    async def silent() -> str:
        return ""

    agent, _ = agent_of([say(call("nothing", "a"), call("silent", "b")), "done"], nothing, silent)
    await agent.run("go")
    assert statuses(agent) == {"a": "ok", "b": "ok"}
    assert results(agent)["b"].content == ()


@pytest.mark.parametrize("execution", list(ToolExecution))
async def test_qp_10_what_a_generator_gave_before_it_failed_is_kept(
    execution: ToolExecution,
) -> None:
    async def parts() -> Any:
        yield "part"
        raise ValueError("broken")

    script: Script = [say(call("parts", "a"), call("echo", "b", x="2")), "done"]
    agent, _ = agent_of(script, parts, echo, tool_execution=execution)
    assert (await agent.run("go")).text == "done"
    assert "part" in results(agent)["a"].text
    assert "broken" in results(agent)["a"].text
    assert statuses(agent) == {"a": "failed", "b": "ok"}


async def test_id_01_missing_and_repeated_ids_are_replaced_in_call_and_result() -> None:
    ids = ["", "", "k", "k"]
    calls = [call("echo", id, x=x) for id, x in zip(ids, "abcd", strict=True)]
    agent, _ = agent_of([say(*calls), "done"], echo)
    await agent.run("go")
    assert [result.text for result in results(agent).values()] == ["a", "b", "c", "d"]
    assert list(results(agent))[2] == "k"
    assert all(results(agent))


async def test_id_01_an_id_that_an_earlier_turn_used_is_replaced() -> None:
    script: Script = [call("echo", "k", x="1"), call("echo", "k", x="2"), "done"]
    agent, _ = agent_of(script, echo)
    await agent.run("go")
    assert [result.text for result in results(agent).values()] == ["1", "2"]


async def test_id_02_two_calls_of_one_tool_have_two_results() -> None:
    agent, _ = agent_of([say(call("echo", "a", x="X"), call("echo", "b", x="Y")), "done"], echo)
    await agent.run("go")
    assert shape(agent.messages)[2:4] == ["a: X", "b: Y"]


async def test_name_01_an_unknown_tool_is_answered_with_near_names() -> None:
    agent, _ = agent_of([say(call("ecco", "a", x="a"), call("echo", "b", x="b")), "done"], echo)
    assert (await agent.run("go")).text == "done"
    assert "echo" in results(agent)["a"].text
    assert statuses(agent) == {"a": "unknown_tool", "b": "ok"}


async def test_name_04_results_show_the_true_name_of_a_tool() -> None:
    odd = Tool.from_schema(
        name="calendar.create event/2",
        description="",
        parameters={"type": "object"},
        run=constant,
    )
    agent, model = agent_of([call("calendar.create event/2", "a"), "done"], odd)
    await agent.run("go")
    assert results(agent)["a"].tool_name == "calendar.create event/2"
    assert model.requests[0].offer is not None
    assert model.requests[0].offer.tools[0].wire_name.isascii()


async def test_tools_are_looked_up_among_those_that_the_request_offered() -> None:
    ledger = Ledger()

    class Hiding(ReActAgent):
        def _tools(self) -> list[Tool]:
            return [one for one in super()._tools() if one.name != "charge"]

    script: Script = [call("charge", "a", amount=1), "done"]
    agent, model = agent_of(script, echo, ledger.charge, kind=Hiding)
    await agent.run("go")
    assert model.requests[0].offer is not None
    assert [one.name for one in model.requests[0].offer.tools] == ["echo"]
    assert (ledger.entries, statuses(agent)) == ([], {"a": "unknown_tool"})


async def test_a_tool_whose_schema_is_broken_is_set_aside_with_a_warning() -> None:
    broken = Tool.from_schema(
        name="bad", description="", parameters={"type": "nonsense"}, run=constant
    )
    agent, model = agent_of(["done"], echo, broken)
    _, events = await watched(agent)
    assert model.requests[0].offer is not None
    assert [one.name for one in model.requests[0].offer.tools] == ["echo"]
    assert "warning" in marks(events)


async def test_name_01_unknown_tools_count_toward_the_limit() -> None:
    agent, model = agent_of([], echo, then=lambda request: call("ecco", x=str(id(request))))
    reply = await agent.run("go")
    assert (reply.limit, len(model.requests)) == ("max_iters=10", 11)


@pytest.mark.parametrize("name", ["functions.echo", "default_api.echo", "Echo", "echo "])
async def test_name_01_a_name_with_something_around_it_is_near(name: str) -> None:
    agent, _ = agent_of([call(name, "a", x="1"), "done"], echo)
    await agent.run("go")
    assert "Did you mean echo?" in results(agent)["a"].text


async def test_name_04_guards_and_watchers_see_the_true_name() -> None:
    class Looking(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            seen.append(call.name)
            return await super()._deciding(call)

    seen: list[str] = []
    odd = tool(name="calendar.create event/2")(echo)
    agent, _ = agent_of([call("calendar.create event/2", x="1"), "done"], odd, kind=Looking)
    _, events = await watched(agent)
    seen += [event.call.name for event in events if isinstance(event, ToolStart)]
    assert seen == ["calendar.create event/2"] * 2
