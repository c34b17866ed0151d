"""Seven layers, a model that fails in five ways, and an audit that verifies.

Last line: It is sent. Asked own 7 times, spare 2; the audit of 10 entries is whole
"""

import tempfile
from typing import Any

import anyio

import callboard_mixins as layers
from callboard import ReActAgent
from callboard.testing import ScriptedModel, ScriptItem, call, drop, error, stream
from callboard_mixins.audit.verifying import read_trail, verify


class Dependable(
    layers.AuditMixin, layers.RedactionMixin, layers.ToolGuardMixin, layers.CompactionMixin,
    layers.FallbackMixin, layers.MediaFilterMixin, layers.RetryMixin, ReActAgent,
): ...  # fmt: skip


ANSWERS: list[ScriptItem] = [
    "Hello.",
    error("slow down", category="rate_limited", retry_after_s=0.01),
    stream("I will ", drop()),
    call("mail", to="[EMAIL_1]"),
    error("too long", category="context_overflow"),
    "Ann wants a mail.",
    error("no credit left", category="quota"),  # the other model is asked, which is busy first
]


def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def main() -> None:
    own = ScriptedModel(ANSWERS, name="own")
    spare = ScriptedModel([error("busy", category="overloaded"), "It is sent."], name="spare")
    trail = f"{tempfile.mkdtemp()}/audit.jsonl"
    policies: dict[str, Any] = {
        "policy": layers.GuardPolicy(default=layers.GuardAction.ALLOW),
        "retry_policy": layers.RetryPolicy(attempts=3, first_wait_s=0.01),
        "compaction_policy": layers.CompactionPolicy(keep_recent=1),
        "audit": layers.JsonLinesTrail(trail),
    }
    agent = Dependable(model=own, tools=[mail], fallback_models=[spare], **policies)
    await agent.run("Good day.")
    reply = await agent.run("Write to ann@example.org.")
    found = verify(read_trail(trail))
    assert found.fault is None
    count = f"Asked own {len(own.requests)} times, spare {len(spare.requests)}"
    print(f"{reply.text} {count}; the audit of {len(found.entries)} entries is whole")


if __name__ == "__main__":
    anyio.run(main)
