"""Failures on purpose: layers that would not work are refused where their class is written.

Last line: misspelt: ReActAgent.__init__() got an unexpected keyword argument 'call_limit'
"""

from __future__ import annotations

from typing import Any

from callboard import Observation, ReActAgent, SealedCall
from callboard.testing import ScriptedModel


class QuietMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


def without_super() -> object:
    class DeafMixin(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            return Observation.of("done!")  # so the tool never runs

    return DeafMixin


def against_the_declared_order() -> object:
    class LoudMixin(ReActAgent):
        goes_outside = (QuietMixin,)

    return type("Agent", (QuietMixin, LoudMixin), {})


def with_a_shared_list() -> object:
    return type("MemoryMixin", (ReActAgent,), {"seen": []})


def with_the_agent_in_front() -> object:
    bases = [ReActAgent, QuietMixin]
    return type("Agent", tuple(bases), {})  # Python itself refuses, so no guard is ever skipped


def misspelt() -> object:
    options: dict[str, Any] = {"call_limit": 3}
    return QuietMixin(model=ScriptedModel(), **options)


def main() -> None:
    order = (without_super, against_the_declared_order, with_a_shared_list)
    for mistake in (*order, with_the_agent_in_front, misspelt):
        try:
            mistake()
        except TypeError as error:  # a CompositionError is one
            print(f"{mistake.__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
