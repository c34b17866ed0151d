"""What is said of calls that did not run, or did not end by themselves, and how they are closed.

Used by `tool_run.py` and, for what a cut-off run leaves open, by `runs.py`.
"""

from __future__ import annotations

from dataclasses import replace

from callboard.approvals import Approval, CallWaits
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
NO_TIME = "This call was not run: the time of this run is used up."
STOPPED = "This call ended the run."
NOT_DECIDED = "This is not the call that was decided, so it was not run."
NOT_AGAIN = (
    "This tool asks a human while it runs, so that it is entered again afterwards; it must be "
    "declared pure or idempotent."
)
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


def parking(call: CallState, waits: CallWaits, state: State) -> tuple[list[Approval], str]:
    """The questions of a running tool that are new, or why its call cannot wait for them."""
    if call.attempts and call.attempts[-1].started.effect is Effect.EFFECT:
        return [], NOT_AGAIN
    run_id = state.run.run_id if state.run is not None else ""
    new = [one for one in waits.approvals if one.id not in call.approval_ids]
    still = [one for one in state.asked_for(call) if one.is_pending]
    if not new and not still:
        return [], "The tool waits for an answer that it was given already."
    return [replace(one, run_id=run_id, call_id=call.call.id) for one in new], ""


def closing_records(call: CallState, observation: Observation, state: State) -> list[Record]:
    """The records that give an open call its result; what waits for a human is withdrawn."""
    waited_for = [id for id in call.approval_ids if state.approvals[id].is_pending]
    withdrawn = [ApprovalResolved(id, "withdrawn") for id in waited_for]
    return [*withdrawn, Observed(call.call.id, observation, new_id("m"))]


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


def skipping_all(state: State) -> list[Record]:
    """As `closing_all`, because the user has said something: what was not started is skipped."""
    records: list[Record] = []
    for call in state.open_calls:
        observation = closing_observation(call)
        if not call.attempts or _only_asks(call, state):
            observation = Observation.of(SKIPPED, Status.SKIPPED)
        records += closing_records(call, observation, state)
    return records


def _only_asks(call: CallState, state: State) -> bool:
    """Whether a tool that changes nothing waits for a human's words."""
    return call.attempts[-1].started.effect is Effect.PURE and state.is_pending(call)


def closing_all(state: State) -> list[Record]:
    """The records that give each open call its result."""
    records: list[Record] = []
    for call in state.open_calls:
        records += closing_records(call, closing_observation(call), state)
    return records
