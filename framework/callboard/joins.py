"""Where a record may wait for the commit that follows it, which then writes both.

Used by `runs.py` and `agent.py`, made by `tool_run.py`. Each commit in a file waits for the disk.
"""

from __future__ import annotations

from callboard.deciding import Steps
from callboard.hooks import Hooks
from callboard.journaling.conversation import Conversation
from callboard.messages import AssistantMessage
from callboard.model import Model
from callboard.performing import Performer
from callboard.watchers import Watchers


class Joins:
    """Tells where nothing is awaited and nothing is told until the next commit.

    Nobody watches there, nobody is asked, nothing waits in the queues, and no layer or hook comes
    in between. A crash is then as one before the record was made.
    """

    __slots__ = ("_conversation", "_is_bare", "_is_unguarded", "_performer", "_watchers")

    def __init__(
        self,
        conversation: Conversation,
        watchers: Watchers,
        performer: Performer,
        *,
        steps: Steps,
        hooks: Hooks,
    ) -> None:
        self._conversation = conversation
        self._performer = performer
        self._watchers = watchers
        layered = "_deciding" in steps.layered or "_acting" in steps.layered
        guards = layered or hooks.before_tool
        around = "reply" in steps.layered or hooks.prepare_next_turn
        supplied = hooks.steering_supplier or hooks.follow_up_supplier
        self._is_unguarded = not (conversation.is_in_memory or guards)
        self._is_bare = not (conversation.is_in_memory or around or supplied)

    def at_an_edge(self, model: Model) -> bool:
        """Whether the start of a run is next to the taking of its prompt, and its last answer to
        its end. `model` may be one that is entered and left, which takes time.
        """
        return self._is_bare and not hasattr(model, "__aenter__") and self._is_quiet()

    def at_answer(self, message: AssistantMessage, model: Model) -> bool:
        """Whether an answer is next to the start of its only call, or to the end of the run."""
        if not (self._is_bare or self._is_unguarded) or self._performer.left_s is not None:
            return False  # where runs around are told what was spent, that may wait
        if not message.calls:
            return self.at_an_edge(model)
        return self._is_unguarded and len(message.calls) == 1 and self._is_quiet()

    def _is_quiet(self) -> bool:
        state = self._conversation.state
        is_disturbed = state.interrupted or state.queues or state.approvals
        return not (self._watchers.active or is_disturbed)
