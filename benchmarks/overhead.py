"""What Callboard costs over a hand-written loop: ratios, measured in one run, interleaved.

    python -m benchmarks.overhead [--rounds 7] [--json FILE]

Both loops do the same checked work. CPU time counts, except for the parallel tools (wall time).
Each number is the smallest of all rounds: what the code costs, and not what else the machine did.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from benchmarks import bare
from benchmarks.workload import Script, add, slow_add
from callboard import ModelRequest, ReActAgent, StopReason, TextBlock, ToolCall, ToolResultMessage
from callboard.approvals import SealedCall, Verdict
from callboard.events import MessageUpdate
from callboard.messages import AssistantMessage, Observation
from callboard.model import Capabilities, Delta, Ready, StopDelta, TextDelta, WholeDelta

Measure = Callable[[], float]


class Model:
    """The script as a Callboard model."""

    name = "script"
    capabilities = Capabilities()

    def __init__(self, script: Script) -> None:
        self.script = script

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        return self.words() if self.script.deltas else self.whole(request)

    async def words(self) -> AsyncIterator[Delta]:
        for word in self.script.words():
            yield TextDelta(word)
        yield StopDelta(StopReason.END)

    def whole(self, request: ModelRequest) -> AsyncIterator[Delta]:
        last = request.messages[-1]
        text, calls = self.script.next(last.text if type(last) is ToolResultMessage else None)
        said = (TextBlock(text=text),) if text else ()
        asked = [ToolCall(id=id, name="add", raw=raw) for id, raw in calls]
        stop = StopReason.TOOL_USE if calls else StopReason.END
        return Ready(WholeDelta((*said, *asked)), StopDelta(stop))


def with_a_layer(base: type[ReActAgent]) -> type[ReActAgent]:
    """One more layer that does nothing, on every async step of a turn."""

    class Through(base):  # type: ignore[valid-type, misc]  # a class made for each base
        async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
            return await super()._reasoning(request)

        async def _deciding(self, call: ToolCall) -> Verdict:
            return await super()._deciding(call)

        async def _acting(self, call: SealedCall) -> Observation:
            return await super()._acting(call)

    return Through


FiveLayers = ReActAgent
for _ in range(5):
    FiveLayers = with_a_layer(FiveLayers)


def ours(script: Script, kind: type[ReActAgent] = ReActAgent, *, slow: bool = False) -> ReActAgent:
    tool = slow_add if slow else add
    agent_tool = named(tool)
    return kind(model=Model(script), tools=[agent_tool], max_iters=script.turns + 2)


def named(function: Callable[..., object]) -> Callable[..., object]:
    function.__name__ = "add"
    return function


def theirs(script: Script, *, slow: bool = False) -> bare.Agent:
    return bare.Agent(bare.Model(script), slow_add if slow else add, script.turns + 2)


def cpu_us(work: Callable[[], object], per: int) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return (time.process_time() - begun) / per * 1e6


def turns(make: Callable[[Script], ReActAgent | bare.Agent], n: int) -> Measure:
    async def go() -> float:
        agent = make(Script(turns=n))
        begun = time.process_time()
        reply = await agent.run("Start.")
        spent = time.process_time() - begun
        text = reply if isinstance(reply, str) else reply.text
        assert text == "done", text
        return spent / n * 1e6

    return lambda: asyncio.run(go())


def parallel(make: Callable[[Script], ReActAgent | bare.Agent]) -> Measure:
    async def go() -> float:
        agent = make(Script(turns=1, width=100))
        begun = time.perf_counter()
        await agent.run("Start.")
        return (time.perf_counter() - begun) * 1e3

    return lambda: asyncio.run(go())


def deltas_ours(n: int) -> Measure:
    async def go() -> float:
        agent, parts = ours(Script(deltas=n)), 0
        begun = time.process_time()
        async with agent.stream("Start.") as events:
            async for event in events:
                parts += type(event) is MessageUpdate
        assert parts == n, parts
        return (time.process_time() - begun) / n * 1e6

    return lambda: asyncio.run(go())


def deltas_bare(n: int) -> Measure:
    async def go() -> float:
        agent, parts = theirs(Script(deltas=n)), 0
        begun = time.process_time()
        async for _ in agent.stream("Start."):
            parts += 1
        assert parts == n + 1, parts
        return (time.process_time() - begun) / n * 1e6

    return lambda: asyncio.run(go())


def crowd(make: Callable[[Script], ReActAgent | bare.Agent], n: int = 1_000) -> Measure:
    async def go() -> float:
        agents = [make(Script(turns=1)) for _ in range(n)]
        begun = time.process_time()
        await asyncio.gather(*[agent.run("Start.") for agent in agents])
        return (time.process_time() - begun) / n * 1e6

    return lambda: asyncio.run(go())


def create(make: Callable[[Script], object], n: int = 1_000) -> Measure:
    script = Script(turns=1)

    def go() -> float:
        kept: list[object] = []
        return cpu_us(lambda: kept.extend([make(script) for _ in range(n)]), n)

    return go


def idle_kib(n: int = 200) -> float:
    script = Script(turns=1)
    kept = [ours(script) for _ in range(20)]
    tracemalloc.start()
    begun = tracemalloc.get_traced_memory()[0]
    kept += [ours(script) for _ in range(n)]
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - begun
    tracemalloc.stop()
    return taken / n / 1024


def import_ms(code: str) -> Measure:
    """CPU time of a fresh interpreter, less that of an empty one."""

    def go() -> float:
        return (_interpreter_s(code) - _interpreter_s("pass")) * 1e3

    return go


def _interpreter_s(code: str) -> float:
    """With compiled modules, as after an installation: some machines forbid to write them."""
    report = f"import time\n{code}\nprint(time.process_time())"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{tempfile.gettempdir()}/callboard-pyc"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", report]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def smallest(a: Measure, b: Measure, rounds: int) -> tuple[float, float]:
    """The smallest of each, measured in turn."""
    results = [(a(), b()) for _ in range(rounds)]
    return min(r[0] for r in results), min(r[1] for r in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, tuple[float, float, float]] = {}  # ours, the other, the budget (a ratio)

    def row(name: str, mine: Measure, other: Measure, budget: float) -> None:
        found = smallest(mine, other, options.rounds)
        rows[name] = (*found, budget)
        ratio = found[0] / found[1]
        print(f"{name:44} {found[0]:9.2f} {found[1]:9.2f} {ratio:6.2f}x  (budget {budget}x)")

    row("turn, us (50 turns)", turns(ours, 50), turns(theirs, 50), 2)
    row("turn at 500 over turn at 50", turns(ours, 500), turns(ours, 50), 1.2)
    row("five empty layers over none, us a turn", turns(_layered, 50), turns(ours, 50), 1.1)
    row("streamed text delta, us", deltas_ours(2_000), deltas_bare(2_000), 4)
    row("100 parallel 10 ms tools, ms", parallel(_slow), parallel(_slow_bare), 1.5)
    row("create an agent, us", create(ours), create(theirs), 5)
    row("1,000 agents at once, us a run", crowd(ours), crowd(theirs), 3)
    base = "import anyio; from pydantic import BaseModel"
    row(
        "import ReActAgent, ms", import_ms("from callboard import ReActAgent"), import_ms(base), 1.6
    )
    print(f"{'an idle agent, KiB':44} {idle_kib():9.2f}                    (budget 4)")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def _layered(script: Script) -> ReActAgent:
    return ours(script, FiveLayers)


def _slow(script: Script) -> ReActAgent:
    return ours(script, slow=True)


def _slow_bare(script: Script) -> bare.Agent:
    return theirs(script, slow=True)


if __name__ == "__main__":
    main()
