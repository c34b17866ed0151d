"""A guard that denies one call and asks a human about another: park, approve, resume.

Last line: finished: The old logs are gone; the database stays.
"""

from __future__ import annotations

import anyio

from callboard import Deny, Proceed, ReActAgent, ToolCall, Verdict
from callboard.testing import ScriptedModel, call, say


class DeletionGuardMixin(ReActAgent):
    """Judges what comes back from super(): that is exactly what would run."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed) or verdict.call.name != "delete":
            return verdict
        if "database" in str(verdict.call.arguments["path"]):
            return Deny("the database is never deleted", rule="keep-the-database")
        return verdict.ask("deleting cannot be undone")


def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


model = ScriptedModel(
    [
        say(call("delete", path="/var/database"), call("delete", path="/var/old.log")),
        "The old logs are gone; the database stays.",
    ]
)
agent = DeletionGuardMixin(model=model, tools=[delete])  # a layer alone is an agent, too


async def main() -> None:
    reply = await agent.run("Make room on the disk.")
    print(f"{reply.outcome}: {reply.text}")
    for approval in reply.pending:
        print(f"  {approval.tool_name} {dict(approval.preview)}? {approval.reason}")
        await agent.approve(approval.id, by="alice")
    reply = await agent.resume()
    for message in reply.messages:
        if message.role == "tool":
            print(f"{message.status}: {message.text}")
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    anyio.run(main)
