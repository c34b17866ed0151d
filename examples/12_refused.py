"""A human is asked in place and refuses with a reason; the model reads it and finds another way.

Last line: finished: The test copy is cleared; the customers' database is as it was.
"""

from __future__ import annotations

import anyio

from callboard import Approval, Approve, Proceed, ReActAgent, Refuse, ToolCall, Verdict
from callboard.testing import ScriptedModel, call


class ClearingGuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("it empties a database") if isinstance(verdict, Proceed) else verdict


def clear(database: str) -> str:
    """Delete all that a database holds."""
    return f"cleared {database}"


async def owner(asked: Approval) -> Approve | Refuse:
    """Somebody at a screen: what they see is exactly what would run."""
    await anyio.sleep(0.1)
    database = asked.preview["database"]
    print(f"{asked.tool_name} {database}? {asked.reason}")
    if database == "customers":
        return Refuse("those are real people; take the copy 'customers-test'", by="alice")
    return Approve(by="alice")


model = ScriptedModel(
    [
        call("clear", database="customers"),
        call("clear", database="customers-test"),
        "The test copy is cleared; the customers' database is as it was.",
    ]
)
agent = ClearingGuardMixin(model=model, tools=[clear], approver=owner)


async def main() -> None:
    reply = await agent.run("Give me an empty database to test with.")
    for message in reply.messages:
        if message.role == "tool":
            print(f"  {message.status}: {message.text}")
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    anyio.run(main)
