"""A layer that has an answer judged, and tries again with what was wrong in mind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callboard.agent import ReActAgent
from callboard.messages import AssistantMessage
from callboard.model import ModelRequest, Purpose
from callboard.replies import Outcome, Prompt, Reply
from callboard_mixins.checked import check_given
from callboard_mixins.judging import (
    JUDGE_PROMPT,
    Attempt,
    Judgement,
    ReflexionPolicy,
    attempts_at,
    best_of,
    judged,
    judgement_of,
    next_prompt,
    question_to_judge,
)

KIND = "reflexion"


class ReflexionMixin(ReActAgent):
    """Reflexion (arXiv 2303.11366): attempt, judge, reflect, attempt again.

    Each judged attempt is a record of its own (`agent.state.layers["reflexion"]`), so that an agent
    that parks or is killed in mid-attempt goes on with that attempt, judges none twice, and
    returns the best of all. Parks and interrupts are no attempts and pass through. Where a limit
    ends an attempt, the reply has that outcome and the text of the best one before it.
    """

    def __init__(self, *, reflexion_policy: ReflexionPolicy | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._reflexion_policy = reflexion_policy or ReflexionPolicy()
        check_given("reflexion_policy", self._reflexion_policy, ReflexionPolicy)

    async def reply(self, prompt: Prompt) -> Reply:
        policy = self._reflexion_policy
        while True:
            attempts = attempts_at(self.state.layers.get(KIND, ()), prompt.id)
            if attempts and _is_enough(attempts, policy):
                return self._reflexion_reply(attempts)
            reply = await super().reply(next_prompt(prompt, attempts))
            if reply.outcome is not Outcome.FINISHED:
                return self._reflexion_cut_off(reply, attempts)
            judgement = await self._reflexion_judged(prompt, reply)
            message_id = None if reply.message is None else reply.message.id
            fact = {"prompt": prompt.id, "text": reply.text, "message": message_id}
            await self._record(
                KIND, {**fact, "score": judgement.score, "reflection": judgement.reflection}
            )

    async def _reflexion_judged(self, prompt: Prompt, reply: Reply) -> Judgement:
        evaluator = self._reflexion_policy.evaluator
        if evaluator is not None:
            return await judged(evaluator, prompt, reply)
        request = ModelRequest(
            model=self.state.model,
            messages=(question_to_judge(prompt, reply),),
            system=JUDGE_PROMPT,
            purpose=Purpose.JUDGEMENT,
        )
        said = await self._reasoning(request)
        judgement = judgement_of(said.text)
        if judgement is None:
            self._warn(f"the judge gave no judgement, so the answer stands: {said.text[:200]!r}")
            return Judgement(1.0)
        return judgement

    def _reflexion_reply(self, attempts: list[Attempt]) -> Reply:
        best = best_of(attempts)
        last = self.state.run_id or ""
        return Reply(
            run_id=last,
            outcome=Outcome.FINISHED,
            text=best.text,
            message=self._reflexion_message(best),
        )

    def _reflexion_cut_off(self, reply: Reply, attempts: list[Attempt]) -> Reply:
        if not attempts:
            return reply
        best = best_of(attempts)
        return replace(reply, text=best.text, message=self._reflexion_message(best))

    def _reflexion_message(self, attempt: Attempt) -> AssistantMessage | None:
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage) and message.id == attempt.message_id:
                return message
        return None


def _is_enough(attempts: list[Attempt], policy: ReflexionPolicy) -> bool:
    passed = attempts[-1].score >= policy.passing_score
    return passed or len(attempts) >= policy.most_attempts
