"""The replies of runs, for those who did not wait for them: after a park, or a tell."""

from __future__ import annotations

from collections import OrderedDict

from callboard.actors.waiting import Answer, Late
from callboard.errors import AskTimeout
from callboard.replies import Outcome, Reply

KEPT = 10_000


class Results:
    """The newest replies of a system by run id, and who waits for one."""

    def __init__(self, *, kept: int = KEPT) -> None:
        self._kept = kept
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self._waiting: dict[str, list[Answer]] = {}

    def add(self, reply: Reply) -> None:
        """Keep a reply; one that waits for an approval is not the last word on its run."""
        if reply.outcome is Outcome.AWAITING_APPROVAL:
            return
        self._replies[reply.run_id] = reply
        if len(self._replies) > self._kept:
            self._replies.popitem(last=False)
        for answer in self._waiting.pop(reply.run_id, ()):
            answer.set(reply)

    async def of(self, run_id: str, *, timeout_s: float) -> Reply:
        """The reply of a run, once there is one.

        Raises:
            AskTimeout: there was none in time.
        """
        known = self._replies.get(run_id)
        if known is not None:
            return known
        answer = Answer()
        self._waiting.setdefault(run_id, []).append(answer)
        try:
            reply: Reply = await answer.wait(timeout_s)
        except Late:
            raise AskTimeout(f"the run {run_id!r} had not ended after {timeout_s:g} s") from None
        finally:
            self._leave(run_id, answer)
        return reply

    def _leave(self, run_id: str, answer: Answer) -> None:
        waiting = self._waiting.get(run_id)
        if waiting is not None and answer in waiting:
            waiting.remove(answer)
            if not waiting:
                del self._waiting[run_id]
