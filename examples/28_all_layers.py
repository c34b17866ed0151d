"""Seven layers on one agent, a model that fails in five ways, and an audit that verifies.

Last line: It is sent. Asked own 7 times, spare 2; the audit of 10 entries is whole
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio

import callboard_mixins as layers
from callboard import ReActAgent, tool
from callboard.testing import ScriptedModel, ScriptItem, call, drop, error, say, stream
from callboard_mixins.audit.verifying import read_trail, verify


class Assistant(layers.FallbackMixin, layers.MediaFilterMixin, layers.RetryMixin, ReActAgent):
    """Goes on where a model fails."""


class Dependable(
    layers.AuditMixin, layers.RedactionMixin, layers.ToolGuardMixin, layers.CompactionMixin, Assistant
): ...  # fmt: skip


@tool
async def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def main() -> None:
    answers: list[ScriptItem] = [
        "Hello.",
        error("slow down", category="rate_limited", retry_after_s=0.01),  # one
        stream("I will ", drop()),  # two: it breaks off
        say(call("mail", to="[EMAIL_1]")),
        error("too long", category="context_overflow"),  # three
        "Ann wants a mail.",  # the summary
        error("no credit left", category="quota"),  # four: the other model is asked
    ]
    own = ScriptedModel(answers, name="own")
    spare = ScriptedModel([error("busy", category="overloaded"), "It is sent."], name="spare")
    trail = Path(tempfile.mkdtemp()) / "audit.jsonl"
    agent = Dependable(
        model=own,
        tools=[mail],
        audit=layers.JsonLinesTrail(trail),
        policy=layers.GuardPolicy(default=layers.GuardAction.ALLOW),
        fallback_models=[spare],
        retry_policy=layers.RetryPolicy(attempts=3, first_wait_s=0.01),
        compaction_policy=layers.CompactionPolicy(keep_recent=1),
    )
    await agent.run("Good day.")
    reply = await agent.run("Write to ann@example.org.")
    found = verify(read_trail(trail))
    whole = "whole" if found.fault is None else f"broken: {found.fault.text}"
    asked = f"own {len(own.requests)} times, spare {len(spare.requests)}"
    print(f"{reply.text} Asked {asked}; the audit of {len(found.entries)} entries is {whole}")


if __name__ == "__main__":
    anyio.run(main)
