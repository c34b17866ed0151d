"""What the user says is redacted for models, journals and events; the tool gets the real value.

Last line: mailed to ann@example.org; the journal holds it: False
"""

from __future__ import annotations

import anyio

from callboard import InMemoryJournal, ReActAgent, tool
from callboard.testing import ScriptedModel, call
from callboard_mixins import RedactionMixin

mailed: list[str] = []


@tool
async def mail(to: str) -> str:
    """Send a mail."""
    mailed.append(to)
    return f"sent to {to}"


class Discreet(RedactionMixin, ReActAgent):
    """An agent that keeps secrets."""


async def main() -> None:
    journal = InMemoryJournal()
    model = ScriptedModel([call("mail", to="[EMAIL_1]"), "I wrote to [EMAIL_1]."])
    agent = Discreet(model=model, tools=[mail], journal=journal)
    reply = await agent.run("Write to ann@example.org. The key is sk-proj-4tGh7Kq29ZxW8vB1nM5c.")
    for message in agent.messages:
        print(f"{message.role}: {message.text}")
    print(agent.revealed(reply.text))
    stored = any(["ann@example.org" in str(record) for record in journal.records])
    print(f"mailed to {mailed[0]}; the journal holds it: {stored}")


if __name__ == "__main__":
    anyio.run(main)
