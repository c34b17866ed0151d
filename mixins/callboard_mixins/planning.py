"""A plan and what became of its steps: read from a model's text, folded from records. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callboard.errors import ConfigurationError
from callboard.messages import UserMessage
from callboard.replies import Prompt

PLAN_PROMPT = (
    "Let us first understand the task and make a plan to solve it. Write the plan as a numbered "
    "list of short steps that can be carried out one after the other. Do not carry it out yet."
)
STEP_PROMPT = (
    "The plan:\n{plan}\n\nCarry out step {number} now, and only this one: {step}\nSay what came of "
    "it. If the plan cannot work, answer with a line that begins with REVISE: and the reason."
)
ANSWER_PROMPT = "All steps are carried out. Give the final answer to: {task}"
_STEP = re.compile(r"^\s*(?:\d+\s*[.):]|[-*\u2022])\s+(\S.*?)\s*$", re.MULTILINE)
_REVISE = re.compile(r"^\s*REVISE\s*:\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPolicy:
    """How a plan is made. `most_steps`: further ones are left out. `most_revisions` of a plan."""

    instructions: str = PLAN_PROMPT
    most_steps: int = 10
    most_revisions: int = 2

    def __post_init__(self) -> None:
        if self.most_steps < 1 or self.most_revisions < 0:
            raise ConfigurationError(
                f"{self!r}: a plan has at least 1 step, and at least 0 revisions"
            )


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step, and what came of it; None while it is not done."""

    text: str
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one prompt. `done` are steps of earlier revisions that were done."""

    steps: tuple[PlanStep, ...]
    revision: int = 0
    done: tuple[PlanStep, ...] = ()
    problem: str | None = None  # why it has to be revised

    @property
    def next_step(self) -> int | None:
        """The number of the first step that is not done, from 0."""
        open_steps = [at for at, step in enumerate(self.steps) if step.result is None]
        return open_steps[0] if open_steps else None

    def __str__(self) -> str:
        return "\n".join([f"{at}. {step.text}" for at, step in enumerate(self.steps, 1)])


def plan_at(facts: Sequence[Mapping[str, Any]], prompt_id: str) -> Plan | None:
    """The plan for a prompt as the layer's records tell it, oldest first."""
    plan: Plan | None = None
    for fact in facts:
        if fact["prompt"] != prompt_id:
            continue
        if "steps" in fact:
            done = () if plan is None else (*plan.done, *_done(plan))
            steps = tuple([PlanStep(text) for text in fact["steps"]])
            plan = Plan(steps, fact["revision"], done)
        elif plan is not None and "problem" in fact:
            plan = Plan(plan.steps, plan.revision, plan.done, fact["problem"])
        elif plan is not None:
            steps = tuple(
                [
                    PlanStep(step.text, fact["result"]) if at == fact["step"] else step
                    for at, step in enumerate(plan.steps)
                ]
            )
            plan = Plan(steps, plan.revision, plan.done)
    return plan


def _done(plan: Plan) -> list[PlanStep]:
    return [step for step in plan.steps if step.result is not None]


def steps_of(text: str, *, most: int) -> list[str]:
    """The steps in a model's plan; the whole text where it is no list."""
    steps = _STEP.findall(text) or [" ".join(text.split())]
    return [step for step in steps if step][:most]


def problem_in(text: str) -> str | None:
    """Why the model wants another plan, or None."""
    found = _REVISE.search(text)
    return None if found is None else found.group(1) or "the plan cannot work"


def question_for_plan(prompt: Prompt, plan: Plan | None) -> tuple[UserMessage, ...]:
    """What the model is asked when it makes the plan, or makes it anew."""
    if plan is None:
        return prompt.messages
    done = "\n".join([f"- {step.text}: {step.result}" for step in (*plan.done, *_done(plan))])
    text = (
        f"The plan before:\n{plan}\n\nDone so far:\n{done or '(nothing)'}\n\nIt cannot go on: "
        f"{plan.problem}\nPlan what is left to do."
    )
    return (*prompt.messages, UserMessage.of(text))


def step_prompt(prompt: Prompt, plan: Plan, at: int) -> Prompt:
    """The prompt of one step. Its ids are made of the first one's: nothing is asked twice."""
    text = STEP_PROMPT.format(plan=plan, number=at + 1, step=plan.steps[at].text)
    id = f"{prompt.id}/plan/{plan.revision}/{at + 1}"
    message = UserMessage(id=id, content=UserMessage.of(text).content)
    first = not at and not plan.revision
    return Prompt(id, (*prompt.messages, message) if first else (message,))


def answer_prompt(prompt: Prompt) -> Prompt:
    """The prompt of the final answer."""
    id = f"{prompt.id}/plan/answer"
    text = ANSWER_PROMPT.format(task=prompt.text)
    return Prompt(id, (UserMessage(id=id, content=UserMessage.of(text).content),))
