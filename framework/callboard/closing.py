"""What is said of calls that did not run, or did not end by themselves, and how they are closed.

Used by `tool_run.py` and, for what a cut-off run leaves open, by `runs.py`.
"""

from __future__ import annotations

from callboard.journaling.records import ApprovalResolved, Observed, Record
from callboard.journaling.transcript import CallState, State
from callboard.messages import Observation, Status, new_id
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Effect

CUT = (
    "This call was not run: the output limit cut the message that holds it. Send smaller parts, "
    "each in a message of its own."
)
REFUSED = "This call was not run: the model's answer was stopped as a refusal or by a filter."
UNKNOWN = (
    "This call was started and then cut off; it is not known whether it took effect. Check "
    "before you do it again."
)
CANCELLED = "This call was cancelled before it finished."
SKIPPED = "This call was not run: the user sent a message meanwhile."
NOT_DECIDED = "This is not the call that was decided, so it was not run."
NOT_REACHED = "The call was answered as done, but no layer below ran the tool, so it did not run."


def unknown_tool(name: str, toolbox: Toolbox) -> Observation:
    """The result of a call of a tool that there is not, with the names that are near."""
    near = toolbox.near(name)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return Observation.of(f"There is no tool {name!r}.{hint}", Status.UNKNOWN_TOOL)


def after_failure(call: CallState, error: Exception) -> Observation:
    """The result where the code of a layer raised: after the tool ran, it tells that too."""
    past = call.attempts[-1].observation if call.attempts else None
    if past is None:
        return Observation.of(f"a layer failed around the call: {error!r}", Status.FAILED)
    text = f"the tool ran and returned {past.text!r}; post-processing failed: {error!r}"
    return Observation.of(text, Status.FAILED)


def closing_records(call: CallState, observation: Observation, state: State) -> list[Record]:
    """The records that give an open call its result; what waits for a human is withdrawn."""
    records: list[Record] = [Observed(call.call.id, observation, new_id("m"))]
    if call.approval_id is not None and state.is_pending(call):
        records.insert(0, ApprovalResolved(call.approval_id, "withdrawn"))
    return records


def closing_observation(call: CallState) -> Observation:
    """What closes a call that is cut off, by what is known of it."""
    past = call.attempts[-1] if call.attempts else None
    if past is None:
        return Observation.of(CANCELLED, Status.CANCELLED)
    if past.observation is not None:
        return past.observation
    if past.started.effect is Effect.EFFECT:
        return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
    return Observation.of(CANCELLED, Status.CANCELLED)


def closing_all(state: State) -> list[Record]:
    """The records that give each open call its result."""
    records: list[Record] = []
    for call in state.open_calls:
        records += closing_records(call, closing_observation(call), state)
    return records
