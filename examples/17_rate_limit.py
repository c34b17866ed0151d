"""Ten agents share one limit: two answers at a time, first come, first served.

Last line: most at a time: 2; in order: True
"""

from __future__ import annotations

import anyio

from callboard import ModelRequest, ReActAgent
from callboard.testing import ScriptedModel
from callboard_mixins import RateLimit, RateLimiter, RateLimitMixin, RetryMixin

LIMITER = RateLimiter(others=RateLimit(concurrency=2, requests_per_minute=600))


class Polite(RateLimitMixin, RetryMixin, ReActAgent):
    """Each attempt waits for its turn; the other order of the two layers is refused."""


class Provider:
    """Counts the answers that are under way."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.served: list[str] = []

    async def answer(self, request: ModelRequest) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await anyio.sleep(0.01)
        self.now -= 1
        self.served.append(request.messages[-1].text)
        return "done"


async def main() -> None:
    provider = Provider()
    model = ScriptedModel(then=provider.answer, name="shared")
    asked = [f"question {number}" for number in range(10)]
    async with anyio.create_task_group() as group:
        for question in asked:
            agent = Polite(model=model, rate_limiter=LIMITER)
            group.start_soon(agent.run, question)
    print(f"most at a time: {provider.most}; in order: {provider.served == asked}")


if __name__ == "__main__":
    anyio.run(main)
