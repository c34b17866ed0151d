"""How good an answer is: a judgement, who makes it, and what is asked next. Pure."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callboard.errors import ConfigurationError
from callboard.messages import UserMessage
from callboard.replies import Prompt, Reply

JUDGE_PROMPT = (
    "You judge answers. Reply with one JSON object and nothing else: "
    '{"score": a number from 0 (useless) to 1 (right and complete), '
    '"reflection": "what was wrong, and what to do differently next time"}'
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody thinks of an attempt. `score` is between 0 and 1.

    Raises:
        ConfigurationError: the score is not between 0 and 1.
    """

    score: float
    reflection: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise ConfigurationError(f"score={self.score!r}: a score is between 0 and 1")


Judged = Judgement | bool | float
Evaluator = Callable[[Prompt, Reply], Judged | Awaitable[Judged]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflexionPolicy:
    """How often an answer is tried, and who judges it.

    `evaluator(prompt, reply)` may be async; it returns a Judgement, a score from 0 to 1, or whether
    the answer is good. What it raises ends the run. Without one the agent's own model judges, by
    a call that no watcher is shown and the budget counts.
    """

    evaluator: Evaluator | None = None
    most_attempts: int = 3
    passing_score: float = 1.0

    def __post_init__(self) -> None:
        if self.most_attempts < 1:
            raise ConfigurationError(f"most_attempts={self.most_attempts!r}: at least 1 is made")
        if not 0 <= self.passing_score <= 1:
            raise ConfigurationError(f"passing_score={self.passing_score!r}: it is between 0 and 1")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that was judged, as it stands in the journal."""

    text: str
    message_id: str | None
    score: float
    reflection: str


def attempts_at(facts: Sequence[Mapping[str, Any]], prompt_id: str) -> list[Attempt]:
    """The judged attempts at one prompt, oldest first."""
    return [
        Attempt(fact["text"], fact["message"], fact["score"], fact["reflection"])
        for fact in facts
        if fact["prompt"] == prompt_id
    ]


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The one with the highest score; the first of several."""
    return max(attempts, key=lambda attempt: attempt.score)


async def judged(evaluator: Evaluator, prompt: Prompt, reply: Reply) -> Judgement:
    """What the evaluator says, as a Judgement.

    Raises:
        TypeError: it says something else.
    """
    said = evaluator(prompt, reply)
    if inspect.isawaitable(said):
        said = await said
    if isinstance(said, Judgement):
        return said
    try:
        return Judgement(float(said))
    except TypeError:
        raise TypeError(
            f"the evaluator said {said!r}; return a Judgement, a score or a bool"
        ) from None


def judgement_of(text: str) -> Judgement | None:
    """The judgement in a model's answer; None where there is none to be read."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    if found is None:
        return None
    try:
        said = json.loads(found.group())
        return Judgement(min(max(float(said["score"]), 0.0), 1.0), str(said.get("reflection", "")))
    except (ValueError, KeyError, TypeError):
        return None


def question_to_judge(prompt: Prompt, reply: Reply) -> UserMessage:
    """What a model is asked about an attempt."""
    return UserMessage.of(f"The question:\n{prompt.text}\n\nThe answer:\n{reply.text}")


def next_prompt(prompt: Prompt, attempts: Sequence[Attempt]) -> Prompt:
    """The prompt of the next attempt. Its ids are made of the first one's, so that entering again
    asks nothing twice.
    """
    if not attempts:
        return prompt
    id = f"{prompt.id}/reflexion/{len(attempts)}"
    hints = attempts[-1].reflection or "it was not good enough"
    text = f"Your last answer was judged: {hints}\n\nTry again, and answer in full:\n{prompt.text}"
    return Prompt(id, (UserMessage(id=id, content=UserMessage.of(text).content),))
