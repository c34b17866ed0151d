"""Secrets and personal data are neither stored nor shown nor sent; tools get what is theirs."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    ConfigurationError,
    FileBlock,
    InMemoryBlobs,
    InMemoryJournal,
    Observation,
    ReActAgent,
    SealedCall,
    SqliteJournal,
    Status,
    ToolContext,
    UserMessage,
    tool,
)
from callboard.events import Event, MessageUpdate
from callboard.journaling.record_codec import encode
from callboard.messages import blocks_of
from callboard.model import TextDelta
from callboard.testing import ScriptedModel, call, say, stream
from callboard.testing.script import ScriptItem, raw_call
from callboard_mixins import SECRETS, FileVault, Pattern, Redaction, RedactionMixin

pytestmark = pytest.mark.anyio
KEY = "sk-a1b2c3d4e5f6g7h8i9j0k1l2"
MAIL = "ada@example.org"
KEPT = Redaction(masked=(), kept=SECRETS)


class RedactedAgent(RedactionMixin, ReActAgent):
    """An agent with the layer under test."""


class Post:
    """A tool with an effect, and what it was given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def send(self, to: str, text: str) -> str:
        """Send a mail."""
        self.sent.append((to, text))
        return f"sent to {to}"


def redacted(script: Sequence[Any], *tools: Any, **more: Any) -> RedactedAgent:
    return RedactedAgent(model=ScriptedModel(script), tools=tools, **more)


def stored(agent: ReActAgent) -> str:
    """All that stands in the journal, as text."""
    assert isinstance(agent.journal, InMemoryJournal)
    return "\n".join([encode(record).decode() for record in agent.journal.records])


async def seen(agent: ReActAgent, prompt: str) -> tuple[str, list[Event]]:
    """What a watcher sees of a run, as one text, and the events."""
    with agent.watch() as events:
        await agent.run(prompt)
    found = [event async for event in events]
    return repr(found), found


async def test_a_prompt_is_stored_shown_and_sent_redacted() -> None:
    model = ScriptedModel(["fine"])
    agent = RedactedAgent(model=model)
    shown, _ = await seen(agent, f"my key is {KEY}, my mail {MAIL}")
    asked = model.requests[0].messages[0].text
    assert asked == "my key is [API_KEY hidden], my mail [EMAIL_1]"
    for text in (shown, stored(agent)):
        assert KEY not in text
        assert MAIL not in text


async def test_a_tool_gets_the_value_and_the_journal_keeps_the_placeholder() -> None:
    post = Post()
    agent = redacted([call("send", to="[EMAIL_1]", text="Hi [EMAIL_1]!"), "sent"], post.send)
    shown, _ = await seen(agent, f"mail {MAIL}")
    assert post.sent == [(MAIL, f"Hi {MAIL}!")]
    assert MAIL not in shown + stored(agent)


async def test_people_may_read_what_is_behind_a_placeholder() -> None:
    agent = redacted(["I wrote to [EMAIL_1]; [EMAIL_7] is nobody."])
    reply = await agent.run(f"mail {MAIL}")
    assert agent.revealed(reply.text) == f"I wrote to {MAIL}; [EMAIL_7] is nobody."


@pytest.mark.parametrize("text", ["[API_KEY hidden]", "[EMAIL_3]"])
async def test_a_call_with_something_hidden_for_good_is_denied(text: str) -> None:
    post = Post()
    agent = redacted([call("send", "a", to=text, text=""), "sorry"], post.send)
    await agent.run(f"my key is {KEY}")
    assert post.sent == []
    assert "stands for something hidden" in agent.messages[-2].text


async def test_brackets_of_others_pass() -> None:
    post = Post()
    await redacted([call("send", to="[NOTE_1]", text="[x]"), "ok"], post.send).run("go")
    assert post.sent == [("[NOTE_1]", "[x]")]


async def test_results_are_redacted_with_payload_and_details() -> None:
    def look() -> Observation:
        """Look it up."""
        return Observation(content=blocks_of(KEY), payload={"password": "hunter2-x9"}, details=MAIL)

    agent = redacted([call("look"), "ok"], look)
    shown, _ = await seen(agent, "go")
    for text in (KEY, "hunter2", MAIL):
        assert text not in shown + stored(agent)


async def test_progress_is_redacted() -> None:
    async def look(context: ToolContext) -> str:
        """Look it up."""
        context.update({"line": f"key {KEY}"})
        return "done"

    _, events = await seen(redacted([call("look"), "ok"], look), "go")
    (update,) = [event for event in events if event.kind == "tool_update"]
    assert update.value == {"line": "key [API_KEY hidden]"}  # type: ignore[attr-defined]


async def test_a_secret_in_a_stream_is_held_back_across_deltas() -> None:
    pieces = [KEY[:3], KEY[3:11], KEY[11:20], KEY[20:], " is it"]
    _, events = await seen(redacted([stream("My key ", *pieces)]), "go")
    deltas = [
        event.delta.text
        for event in events
        if isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta)
    ]
    assert "".join(deltas) == "My key [API_KEY hidden] is it"
    assert not [delta for delta in deltas if "sk-" in delta]


async def test_a_steering_message_is_redacted() -> None:
    agent = redacted(["one", "two"])
    await agent.steer(f"use {KEY}")
    await agent.run("go")
    assert KEY not in stored(agent)


async def test_what_a_failure_says_is_redacted() -> None:
    def fail() -> None:
        """Fail."""
        raise ValueError(f"401 for https://ada:{'s3cr3t'}@host/?key={KEY}")

    agent = redacted([call("fail"), "ok"], fail)
    shown, _ = await seen(agent, "go")
    assert "s3cr3t" not in shown + stored(agent)
    assert KEY not in shown + stored(agent)


async def test_a_history_from_before_is_sent_redacted() -> None:
    """A journal that was written without the layer holds what it holds; nothing of it is sent."""
    plain = ReActAgent(model=ScriptedModel(["ok"]))
    await plain.run(f"my key is {KEY}")
    model = ScriptedModel(["again"])
    agent = RedactedAgent(model=model, journal=plain.journal)
    await agent.run("and now?")
    assert KEY not in repr(model.requests[0].messages)


async def test_the_system_prompt_is_sent_redacted() -> None:
    model = ScriptedModel(["ok"])
    await RedactedAgent(model=model, system_prompt=f"The key is {KEY}.").run("go")
    assert model.requests[0].system == "The key is [API_KEY hidden]."


async def test_patterns_of_ones_own_hide_too() -> None:
    own = Redaction(masked=(Pattern("ticket", r"TCK-\d{4}"),), kept=())
    agent = redacted(["about TCK-1234"], redaction=own)
    assert (await agent.run("go")).text == "about [TICKET hidden]"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Pattern("Ticket!", "x"), "name it in words"),
        (lambda: Pattern("ticket", "("), "unterminated subpattern"),
        (lambda: Pattern("ticket", "x*"), "matches nothing at all"),
        (lambda: Redaction(masked=(), kept=()), "hides nothing"),
        (lambda: Redaction(kept=SECRETS), "both masked and kept"),
    ],
)
def test_a_wrong_policy_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make()


async def test_blobs_hold_no_secret() -> None:
    """The whole of a text that was cut goes to the store, past the layers of records."""
    blobs = InMemoryBlobs()

    @tool(max_result_bytes=200)
    def look() -> str:
        """Look it up."""
        return "x " * 200 + KEY

    agent = redacted([call("look"), "ok"], look, blobs=blobs)
    await agent.run("go")
    (kept,) = blobs._kept.values()
    assert kept.endswith(b"x [API_KEY hidden]")
    assert "the whole is kept as sha256:" in agent.messages[-2].text


async def test_large_files_are_kept_without_their_secrets() -> None:
    blobs = InMemoryBlobs()
    data = base64.b64encode((f"{KEY}\n" + "x\n" * 200_000).encode()).decode()
    agent = redacted(["ok"], blobs=blobs)
    await agent.run(UserMessage(content=(FileBlock(data=data, name="notes.txt"),)))
    (kept,) = blobs._kept.values()
    assert kept.startswith(b"[API_KEY hidden]\nx")


async def test_a_secret_that_a_cut_went_through_leaves_no_half() -> None:
    @tool(max_result_bytes=160)
    def look() -> str:
        """Look it up."""
        return f"the key: {KEY} " * 9

    agent = redacted([call("look"), "ok"], look)
    await agent.run("go")
    text = agent.messages[-2].text
    assert "sk-" not in text
    assert "[cut: " in text


async def test_guards_judge_the_values() -> None:
    judged: list[str] = []

    class Guarded(RedactionMixin, ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            judged.append(call.arguments["to"])
            return await super()._acting(call)

    post = Post()
    model = ScriptedModel([call("send", to="[EMAIL_1]", text=""), "ok"])
    await Guarded(model=model, tools=[post.send]).run(f"mail {MAIL}")
    assert judged == [MAIL]


async def test_an_approved_call_runs_with_its_values() -> None:
    """The human is asked about what would run; it was stored with placeholders meanwhile."""

    class Asking(RedactionMixin, ReActAgent):
        async def _deciding(self, call: Any) -> Any:
            verdict = await super()._deciding(call)
            return verdict.ask("mails go out")  # type: ignore[union-attr]  # nothing denies here

    post = Post()
    model = ScriptedModel([call("send", to="[EMAIL_1]", text=""), "ok"])
    agent = Asking(model=model, tools=[post.send])
    reply = await agent.run(f"mail {MAIL}")
    assert reply.pending[0].preview == {"to": "[EMAIL_1]", "text": ""}
    await agent.approve(reply.pending[0].id, by="ada")
    await agent.resume()
    assert post.sent == [(MAIL, "")]


async def test_a_vault_in_a_file_outlives_the_process(tmp_path: Path) -> None:
    def agent(journal: SqliteJournal, *script: ScriptItem) -> RedactedAgent:
        vault = FileVault(tmp_path / "vault")
        return redacted(script, post.send, journal=journal, redaction_vault=vault)

    post = Post()
    with SqliteJournal(tmp_path / "agent.db") as journal:
        await agent(journal, "noted").run(f"my mail is {MAIL}")
    with SqliteJournal(tmp_path / "agent.db") as journal:
        await agent(journal, call("send", to="[EMAIL_1]", text=""), "sent").run("mail me")
    assert post.sent == [(MAIL, "")]


async def test_a_lost_vault_denies(tmp_path: Path) -> None:
    post = Post()
    first = redacted(["noted"], post.send)
    await first.run(f"my mail is {MAIL}")
    script = [call("send", "a", to="[EMAIL_1]", text=""), "sorry"]
    agent = redacted(script, post.send, journal=first.journal)
    await agent.run("mail me")
    assert post.sent == []
    assert agent.messages[-2].status is Status.DENIED  # type: ignore[union-attr]  # a result


def test_a_vault_file_is_for_its_owner_and_no_other_file(tmp_path: Path) -> None:
    FileVault(tmp_path / "vault").placeholder("email", MAIL)
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o600
    (tmp_path / "diary").write_text("Dear diary")
    with pytest.raises(ConfigurationError, match="is no vault"):
        FileVault(tmp_path / "diary")


async def test_two_agents_share_no_values() -> None:
    one, other = redacted(["a"]), redacted(["b"])
    await one.run(f"mail {MAIL}")
    await other.run("mail bob@example.org")
    assert (one.revealed("[EMAIL_1]"), other.revealed("[EMAIL_1]")) == (MAIL, "bob@example.org")


@pytest.mark.parametrize(
    "raw",
    [json.dumps({"to": "x", "text": KEY}), '{"to":"x","text":"s\\u006b-a1b2c3d4e5f6g7h8i9j0k1l2"}'],
)
async def test_sec_02_arguments_are_stored_redacted_also_behind_escapes(raw: str) -> None:
    post = Post()
    agent = redacted([say(raw_call("send", raw)), "ok"], post.send, redaction=KEPT)
    await agent.run("go")
    assert KEY not in stored(agent)
    assert "u006b" not in stored(agent)
    assert post.sent == [("x", KEY)]
