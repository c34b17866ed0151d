"""Every limit ends a run the same way: one last model call without tools, and a named limit.

Last line: budget (repeats=3): The door does not open. Last seen: locked.
"""

from __future__ import annotations

from itertools import count

from callboard import Budget, ReActAgent
from callboard.testing import ScriptedModel, call

pages = count(1)


async def next_page() -> str:
    """Read the next page of the book."""
    return f"page {next(pages)}: it goes on"


async def open_door() -> str:
    """Try the door."""
    return "locked"


def main() -> None:
    # Two turns of reasoning and acting; the third request is the summary.
    model = ScriptedModel([call("next_page"), call("next_page"), "Two pages in, it goes on."])
    reader = ReActAgent(model=model, tools=[next_page], max_iters=2)
    reply = reader.run_sync("How does the book end?")
    last = model.requests[-1]
    print(f"{reply.outcome} ({reply.limit}): {reply.text}")
    print(f"the summary was asked for without tools: {last.offer is None}")
    print(f"and with: {last.messages[-1].text[:51]}...")

    # Where the summary is empty or fails, it is put together from the results, without a model.
    model = ScriptedModel([call("next_page"), ""])
    reader = ReActAgent(model=model, tools=[next_page], max_iters=1)
    reply = reader.run_sync("How does the book end?")
    print(f"{reply.outcome}, summary failed: {reply.summary_failed}, so this is the text:")
    print(reply.text)

    # Three identical calls with identical results are a limit too.
    model = ScriptedModel([call("open_door")] * 3 + ["The door does not open. Last seen: locked."])
    agent = ReActAgent(model=model, tools=[open_door], budget=Budget(tokens=10_000))
    reply = agent.run_sync("Get inside.")
    print(f"{reply.outcome} ({reply.limit}): {reply.text}")


if __name__ == "__main__":
    main()
