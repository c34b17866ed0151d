"""A layer that makes a plan first, carries it out step by step, and revises it where it must."""

from __future__ import annotations

from typing import Any

from callboard.agent import ReActAgent
from callboard.model import ModelRequest, Purpose
from callboard.replies import Outcome, Prompt, Reply
from callboard_mixins.checked import check_given
from callboard_mixins.planning import (
    Plan,
    PlanPolicy,
    answer_prompt,
    plan_at,
    problem_in,
    question_for_plan,
    step_prompt,
    steps_of,
)

KIND = "plan"


class PlanAndSolveMixin(ReActAgent):
    """Plan-and-Solve (arXiv 2305.04091): a plan, its steps one after the other, then the answer.

    The plan comes from a call of its own that offers no tools. Plan, results and revisions are
    records (`agent.plan` shows them), so that an agent that parks or is killed in mid-step goes on
    with that step and plans nothing twice. Each step is an attempt with its own `max_iters`;
    where one ends by anything but a finished answer, the run ends with it.
    """

    def __init__(self, *, plan_policy: PlanPolicy | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._plan_and_solve_policy = plan_policy or PlanPolicy()
        check_given("plan_policy", self._plan_and_solve_policy, PlanPolicy)

    @property
    def plan(self) -> Plan | None:
        """The plan for the latest prompt, with what came of its steps."""
        facts = self.state.layers.get(KIND, ())
        return plan_at(facts, facts[-1]["prompt"]) if facts else None

    async def reply(self, prompt: Prompt) -> Reply:
        if not prompt.messages:  # only what waits in the queues is to be answered
            return await super().reply(prompt)
        while True:
            plan = plan_at(self.state.layers.get(KIND, ()), prompt.id)
            if plan is None or self._plan_and_solve_must_revise(plan):
                await self._plan_and_solve_plan(prompt, plan)
                continue
            at = plan.next_step
            if at is None:
                return await super().reply(answer_prompt(prompt))
            reply = await super().reply(step_prompt(prompt, plan, at))
            if reply.outcome is not Outcome.FINISHED:
                return reply
            await self._plan_and_solve_done(prompt, plan, at, reply)

    def _plan_and_solve_must_revise(self, plan: Plan) -> bool:
        return plan.problem is not None and plan.next_step is not None

    async def _plan_and_solve_plan(self, prompt: Prompt, plan: Plan | None) -> None:
        policy = self._plan_and_solve_policy
        request = ModelRequest(
            model=self.state.model,
            messages=question_for_plan(prompt, plan),
            system=policy.instructions,
            purpose=Purpose.PLAN,
        )
        said = await self._reasoning(request)
        steps = steps_of(said.text, most=policy.most_steps)
        revision = 0 if plan is None else plan.revision + 1
        await self._record(KIND, {"prompt": prompt.id, "steps": steps, "revision": revision})

    async def _plan_and_solve_done(self, prompt: Prompt, plan: Plan, at: int, reply: Reply) -> None:
        problem = problem_in(reply.text)
        if problem is not None and plan.revision < self._plan_and_solve_policy.most_revisions:
            await self._record(KIND, {"prompt": prompt.id, "problem": problem})
            return
        await self._record(KIND, {"prompt": prompt.id, "step": at, "result": reply.text})
