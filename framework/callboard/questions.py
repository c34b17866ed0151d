"""`ask_user`: a tool by which the model asks a human, who may take a day to answer."""

from __future__ import annotations

from callboard.approvals import Approval, CallWaits
from callboard.messages import new_id
from callboard.tooling.tool_context import ToolContext
from callboard.tooling.tools import Effect, tool

LONGEST = 2_000  # characters of a question that stand in lists


@tool(effect=Effect.PURE, timeout_s=None)
def ask_user(question: str, context: ToolContext, options: tuple[str, ...] = ()) -> str:
    """Ask the user a question, and wait for the answer. Only for what they alone can know.

    Args:
        question: What you want to know, in a sentence or two.
        options: Answers to choose from, if there are few; the user may answer otherwise.
    """
    asked: tuple[Approval, ...] = context.agent.questions_of(context.call_id)
    for one in asked:
        if one.answer is not None:
            return one.answer
    raise CallWaits(
        Approval(
            id=new_id("question"),
            run_id="",
            call_id=context.call_id,
            tool_name=context.tool_name,
            digest="",
            preview={"question": question, **({"options": options} if options else {})},
            reason=question[:LONGEST],
            is_question=True,
        )
    )
