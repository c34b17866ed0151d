"""Failures that pass are tried again, others are taken to another model; nothing is shown twice.

Last line: finished by spare: Here is the plan. (4 attempts, shown: 'Here is the plan.')
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.events import MessageUpdate, Retry, Warned
from callboard.model import AttemptDiscarded, TextDelta
from callboard.testing import ScriptedModel, drop, error, stream
from callboard_mixins import FallbackMixin, RetryMixin, RetryPolicy


class Steady(FallbackMixin, RetryMixin, ReActAgent):
    """Tries each model twice, then the next one."""


async def main() -> None:
    busy = error("too many requests", category="rate_limited", retry_after_s=0.1)
    own = ScriptedModel([busy, stream("Here ", "is ", drop())], name="own")
    spare = ScriptedModel(
        [stream("Here is ", drop()), stream("Here is ", "the plan.")], name="spare"
    )
    agent = Steady(
        model=own,
        fallback_models=[spare],
        retry_policy=RetryPolicy(attempts=2, first_wait_s=0.01),
    )
    shown = ""
    async with agent.stream("Make a plan.") as events:
        async for event in events:
            match event:
                case Retry(reason=reason):
                    print(f"again, since {reason.partition(';')[0]}")
                case Warned(text=text):
                    print(text)
                case MessageUpdate(delta=TextDelta(text=text)):
                    shown += text
                case MessageUpdate(delta=AttemptDiscarded()):
                    shown = ""
                case _:
                    pass
    reply = events.reply
    assert reply is not None
    assert reply.message is not None
    told = f"{len(own.requests) + len(spare.requests)} attempts, shown: {shown!r}"
    print(f"{reply.outcome} by {reply.message.model}: {reply.text} ({told})")


if __name__ == "__main__":
    anyio.run(main)
