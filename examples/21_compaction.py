"""A long conversation within a small window: old rounds are summed up, and stay in the journal.

Last line: the model was shown 3 messages of 5
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.testing import ScriptedModel
from callboard_mixins import CompactionMixin, CompactionPolicy


class LongLived(CompactionMixin, ReActAgent):
    """An agent that can go on for long."""


async def main() -> None:
    chapter = "It was a dark and stormy night. " * 20
    model = ScriptedModel(
        [chapter, chapter, "Two chapters were told: the night was dark and stormy.", "The end."]
    )
    policy = CompactionPolicy(at_tokens=250, keep_recent=2)
    agent = LongLived(model=model, compaction_policy=policy)
    for prompt in ("Tell me a story.", "Go on.", "How does it end?"):
        reply = await agent.run(prompt)
        print(f"{prompt} {reply.text[:40]}")
    shown = model.requests[-1].messages
    print(f"shown first: {shown[0].text!r}")
    print(f"the model was shown {len(shown)} messages of {len(agent.messages) - 1}")


if __name__ == "__main__":
    anyio.run(main)
