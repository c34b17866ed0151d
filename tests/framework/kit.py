"""What the tests of the loop share: small tools, an agent on a script, events as short marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import anyio

from callboard.agent import ReActAgent
from callboard.events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageStart,
    ToolEnd,
    ToolStart,
    ToolUpdate,
)
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import Record
from callboard.journaling.transcript import fold
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    Observation,
    Status,
    ToolResultMessage,
)
from callboard.replies import PromptLike, Reply
from callboard.testing import ScriptedModel
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import Tool

Script = list[ScriptItem]


async def echo(x: str) -> str:
    """Say it again."""
    return x


async def boom() -> None:
    """Fail."""
    raise ValueError("boom")


async def wait(ms: int) -> int:
    """Wait, then give back how long."""
    await anyio.sleep(ms / 1000)
    return ms


class Ledger:
    """Tools with an effect, and what they did."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    async def charge(self, amount: int) -> str:
        """Charge a card."""
        self.entries.append(amount)
        return f"charged {amount}"

    async def slow(self) -> str:
        """Take an hour."""
        self.entries.append("started")
        try:
            await anyio.sleep(3600)
        except BaseException:
            self.entries.append("cancelled")
            raise
        self.entries.append("finished")
        return "slow"


def agent_of(
    script: Iterable[ScriptItem],
    *tools: Tool | Callable[..., Any],
    kind: type[ReActAgent] = ReActAgent,
    then: ScriptItem | None = None,
    **options: Any,
) -> tuple[ReActAgent, ScriptedModel]:
    """An agent on this script, and the model that plays it."""
    model = ScriptedModel(script, then=then)
    return kind(model=model, tools=tools, **options), model


async def watched(agent: ReActAgent, prompt: PromptLike = "go") -> tuple[Reply, list[Event]]:
    """The reply to a prompt, and all that a watcher saw of the run."""
    with agent.watch() as events:
        reply = await agent.run(prompt)
    return reply, [event async for event in events]


def shape(messages: Iterable[ConversationMessage]) -> list[str]:
    """Messages as words: 'user: hi', 'calls: a b', 'a: 1', 'b: denied: no', 'assistant: done'."""
    return [_word(message) for message in messages]


def _word(message: ConversationMessage) -> str:
    if isinstance(message, ToolResultMessage):
        status = "" if message.status is Status.OK else f"{message.status}: "
        return f"{message.call_id}: {status}{message.text}"
    if isinstance(message, AssistantMessage) and message.calls:
        return f"calls: {' '.join(call.id for call in message.calls)}"
    return f"{message.role}: {message.text}"


def marks(events: Iterable[Event]) -> list[str]:
    """Events as marks: 'ts a', 'tu a', 'te a' ('te! a' for an error), 'ms user', 'me a'."""
    return [_mark(event) for event in events]


def _mark(event: Event) -> str:
    match event:
        case ToolStart(call=call):
            return f"ts {call.id}"
        case ToolUpdate(call_id=id):
            return f"tu {id}"
        case ToolEnd(call_id=id, observation=Observation(status=status)):
            return f"te {id}" if status is Status.OK else f"te! {id}"
        case MessageStart(role=role):
            return f"ms {role}"
        case MessageEnd(message=ToolResultMessage(call_id=id)):
            return f"me {id}"
        case MessageEnd(message=message):
            return f"me {message.role if message else 'nothing'}"
        case AgentEnd(outcome=outcome):
            return f"agent_end {outcome}"
        case _:
            return event.kind


def of_tools(events: Iterable[Event]) -> list[str]:
    """The marks of tool calls and of their result messages."""
    kept = ("ts ", "tu ", "te ", "te! ", "me ")
    return [m for m in marks(events) if m.startswith(kept) and m not in ("me user", "me assistant")]


def results(agent: ReActAgent) -> dict[str, ToolResultMessage]:
    """The results in the conversation, by call id."""
    found = [m for m in agent.messages if isinstance(m, ToolResultMessage)]
    assert len({m.call_id for m in found}) == len(found)
    return {m.call_id: m for m in found}


def statuses(agent: ReActAgent) -> dict[str, str]:
    """The status of each result, by call id and in order."""
    return {id: str(result.status) for id, result in results(agent).items()}


def assert_replays(agent: ReActAgent) -> None:
    """The journal, folded anew, makes the state that the agent lives in."""
    journal: Any = agent.journal  # whose records can be read at once
    live, replayed = agent._conversation.state, fold(journal.records)
    for name in type(live).__slots__:
        if name != "round":
            assert getattr(live, name) == getattr(replayed, name), name
    assert shape(open_round(live)) == shape(open_round(replayed))


def open_round(state: Any) -> Sequence[ConversationMessage]:
    return state.round.results() if state.round is not None else ()


def assert_paired(events: Sequence[Event]) -> None:
    """Each start has one end, and the last event is the end of a run."""
    for kind in ("agent", "turn", "message", "tool"):
        starts = _named(events, f"{kind}_start")
        assert starts == _named(events, f"{kind}_end")
        assert kind in ("agent", "turn") or set(starts.values()) <= {1}
    assert isinstance(events[-1], AgentEnd)


def _named(events: Sequence[Event], kind: str) -> Counter[str]:
    """What starts or ends, and how often."""
    fields = {"turn": "turn", "message": "message_id", "tool": "call_id"}
    field = "call.id" if kind == "tool_start" else fields.get(kind.split("_")[0], "run_id")
    read = attrgetter(field)
    return Counter([f"{event.run_id} {read(event)}" for event in events if event.kind == kind])


class SlowJournal:
    """A journal behind a wire: it takes a moment before and after it has written."""

    def __init__(self, records: Sequence[Record] = (), *, moment_s: float = 0.001) -> None:
        self.inner = InMemoryJournal(records)
        self.moment_s = moment_s

    @property
    def records(self) -> Sequence[Record]:
        return self.inner.records

    async def append(self, records: Sequence[Record], expected: int) -> None:
        await anyio.sleep(self.moment_s)
        self.inner.append_now(records, expected)
        await anyio.sleep(self.moment_s)

    async def read(self, start: int = 0) -> Sequence[Record]:
        await anyio.sleep(self.moment_s)
        return list(self.inner.records[start:])
