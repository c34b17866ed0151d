"""Talking to an agent at work: steering enters after the running tools, a follow-up at the end.

Last line: assistant: Posted.
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent, ToolContext
from callboard.testing import ScriptedModel, call


async def draft(topic: str, context: ToolContext) -> str:
    """Write a draft. While it works, its user changes their mind."""
    agent: ReActAgent = context.agent
    await agent.follow_up("Now post it.")
    mistake = await agent.steer("Make it green instead.")
    await agent.withdraw(mistake)  # it was not read yet, so it can be taken back
    await agent.steer("Make it shorter, please.")
    return f"a long text about {topic}"


model = ScriptedModel(
    [
        call("draft", topic="ships"),
        "Shorter: ships float.",  # answers the steering
        "Posted.",  # answers the follow-up
    ]
)
agent = ReActAgent(model=model, tools=[draft])


async def main() -> None:
    reply = await agent.run("Write about ships.")
    for message in reply.messages:
        print(f"{message.role}: {message.text or 'calls draft'}")


if __name__ == "__main__":
    anyio.run(main)
