"""Two agents in one system: the writer asks the critic, in a run whose budget covers both.

Last line: A frog jumps. (3 model calls, nobody left)
"""

from __future__ import annotations

import anyio

from callboard import ActorSystem, Budget, ReActAgent, tool
from callboard.testing import ScriptedModel, call


async def main() -> None:
    write = ScriptedModel([call("ask_critic", draft="An old pond, a frog."), "A frog jumps."])
    judge = ScriptedModel(["Say what the frog does."])
    async with ActorSystem() as system:
        critic = await system.spawn(ReActAgent(name="critic", model=judge))

        @tool
        async def ask_critic(draft: str) -> str:
            """What the critic thinks of a draft."""
            reply = await critic.ask(draft, timeout_s=30)
            return str(reply.text)

        writer = await system.spawn(
            ReActAgent(
                name="writer", model=write, tools=[ask_critic], budget=Budget(model_calls=10)
            )
        )
        reply = await writer.ask("Write about a frog.")
    calls = len(write.requests) + len(judge.requests)
    print(f"{reply.text} ({calls} model calls, {'nobody' if not system.active else 'some'} left)")


if __name__ == "__main__":
    anyio.run(main)
