"""A conversation out of one agent and into another, and the journal that it is a fold of.

Last line: finished: You are Ada.
"""

from __future__ import annotations

import json

import anyio
from pydantic import TypeAdapter

from callboard import InMemoryJournal, ReActAgent
from callboard.messages import Message
from callboard.testing import ScriptedModel, call

messages_codec = TypeAdapter(list[Message])


def remember(name: str) -> str:
    """Remember the user's name."""
    return f"noted {name}"


async def main() -> None:
    journal = InMemoryJournal()
    model = ScriptedModel([call("remember", name="Ada"), "Hello Ada."])
    first = ReActAgent(name="first", model=model, tools=[remember], journal=journal)
    await first.run("I am Ada.")
    print("journal:", ", ".join(type(record).__name__ for record in journal.records))

    # Messages are plain data: to JSON and back.
    text = messages_codec.dump_json(list(first.messages)).decode()
    print(f"{len(json.loads(text))} messages, {len(text) // 100 * 100} bytes or so")

    # What is brought in is mended first, so that it can be sent: here a result is missing.
    kept = messages_codec.validate_json(text)
    del kept[2]
    model = ScriptedModel(["You are Ada."])
    second = ReActAgent(name="second", model=model, messages=kept)
    reply = await second.run("Who am I?")
    print("sent:", [message.role for message in model.requests[0].messages])
    print("mended:", second.messages[2].text)
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    anyio.run(main)
