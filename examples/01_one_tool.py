"""One agent, one tool. The model is scripted, so this runs anywhere and always the same way.

Last line: finished: It rains in Oslo: take the umbrella.
"""

from __future__ import annotations

from callboard import ReActAgent
from callboard.testing import ScriptedModel, call


def weather(city: str) -> str:
    """Look up the weather.

    Args:
        city: Where.
    """
    return f"rain in {city}"


# What the model will say: first it calls the tool, then it answers.
model = ScriptedModel(
    [
        call("weather", city="Oslo"),
        "It rains in Oslo: take the umbrella.",
    ]
)

agent = ReActAgent(
    model=model,
    system_prompt="You help people to leave the house dry.",
    tools=[weather],
)


def main() -> None:
    reply = agent.run_sync("Do I need an umbrella in Oslo?")
    for message in reply.messages:
        print(f"{message.role:>9}: {message.text or 'calls a tool'}")
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    main()
