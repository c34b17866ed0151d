"""Every decision and every execution in a chain; somebody edits it, and the edit is found.

Last line: after the edit: line 3: it was changed: its hash is another one
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio

from callboard import Deny, ReActAgent, ToolCall, Verdict, tool
from callboard.testing import ScriptedModel, call, say
from callboard_mixins import AuditMixin, JsonLinesTrail
from callboard_mixins.audit.verifying import read_trail, verify


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


class Careful(AuditMixin, ReActAgent):
    """Audited, and never pays more than 100."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return Deny("more than 100") if int(str(call.arguments["amount"])) > 100 else verdict


async def main() -> None:
    file = Path(tempfile.mkdtemp()) / "audit.jsonl"
    model = ScriptedModel([say(call("pay", amount=20), call("pay", amount=900)), "Paid 20."])
    agent = Careful(model=model, tools=[pay], audit=JsonLinesTrail(file))
    print((await agent.run("Pay both.")).text)

    found = verify(read_trail(file))
    print(f"{len(found.entries)} entries, {'whole' if found.fault is None else 'broken'}")

    file.write_text(file.read_text().replace("more than 100", "of no account"))
    fault = verify(read_trail(file)).fault
    assert fault is not None
    print(f"after the edit: line {fault.line}: {fault.text}")


if __name__ == "__main__":
    anyio.run(main)
