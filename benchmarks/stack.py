"""What a turn costs with seven layers that find nothing to do but to look: ratios over the agent
without them, with the same journal.

    python -m benchmarks.stack [--rounds 5] [--turns 50] [--wall] [--folder DIR]

The seven are Audit, Redaction, ToolGuard, MediaFilter, Compaction, Retry and Fallback. CPU time of
all threads, or wall time with `--wall`, in which an audit waits for the disk: give a folder on the
disk that is meant. Each number is the smallest of all rounds, measured in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.journal import timed
from benchmarks.overhead import Model, named
from benchmarks.workload import Script, add
from callboard import InMemoryJournal, ReActAgent, SqliteJournal, tool
from callboard_mixins import (
    AuditMixin,
    CompactionMixin,
    CompactionPolicy,
    FallbackMixin,
    GuardAction,
    GuardPolicy,
    JsonLinesTrail,
    MediaFilterMixin,
    RedactionMixin,
    RetryMixin,
    ToolGuardMixin,
)


class Bare(ReActAgent):
    """No layer."""


class Six(
    RedactionMixin,
    ToolGuardMixin,
    CompactionMixin,
    FallbackMixin,
    MediaFilterMixin,
    RetryMixin,
    ReActAgent,
):
    """All but the audit."""


class Seven(AuditMixin, Six):
    """The stack."""


Keywords = Callable[[Path], dict[str, Any]]
Clock = Callable[[], float]
SYNCS = ("effects", "never")


def six(_: Path) -> dict[str, Any]:
    return {
        "policy": GuardPolicy(default=GuardAction.ALLOW),
        "compaction_policy": CompactionPolicy(at_tokens=1_000_000),
        "fallback_models": [Model(Script())],
    }


def seven(sync: Any) -> Keywords:
    return lambda folder: {
        **six(folder),
        "audit": JsonLinesTrail(folder / "audit.jsonl", sync=sync),
    }


def nothing(_: Path) -> dict[str, Any]:
    return {}


STACKS: dict[str, tuple[type[ReActAgent], Keywords]] = {
    "bare": (Bare, nothing),
    "six, no audit": (Six, six),
    **{f"seven, sync={sync}": (Seven, seven(sync)) for sync in SYNCS},
}
JOURNALS = ("memory", "sqlite NORMAL", "sqlite FULL")


def journal_in(folder: Path, kind: str) -> Any:
    if kind == "memory":
        return InMemoryJournal()
    synchronous: Any = kind.split()[1]
    return SqliteJournal(folder / "agent.db", synchronous=synchronous)


def turn_us(
    name: str, journal: str, effect: str, *, turns: int, parent: str | None, clock: Clock
) -> float:
    cls, keywords = STACKS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=parent)))
        kept = journal_in(folder, journal)
        agent = cls(
            model=Model(Script(turns=turns)),
            tools=[tool(effect=effect)(named(add))],
            max_iters=turns + 2,
            journal=kept,
            **keywords(folder),
        )
        spent = asyncio.run(timed(agent, clock))
        if isinstance(kept, SqliteJournal):
            kept.close()
    return spent / turns * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--folder", help="where the files are written")
    parser.add_argument("--wall", action="store_true", help="wall time, with what the disk takes")
    options = parser.parse_args()
    clock = time.perf_counter if options.wall else time.process_time
    turns, parent = options.turns, options.folder
    print(f"{'us a turn':<38}" + "".join([f"{name:>24}" for name in STACKS]))
    for journal in JOURNALS:
        for effect in ("pure", "effect"):
            best = dict.fromkeys(STACKS, float("inf"))
            for _ in range(options.rounds):
                for name in STACKS:
                    found = turn_us(name, journal, effect, turns=turns, parent=parent, clock=clock)
                    best[name] = min(best[name], found)
            told = [f"{us:15.0f} ({us / best['bare']:5.2f}x)" for us in best.values()]
            print(f"{journal + ', ' + effect + ' tool':<38}" + "".join(told))


if __name__ == "__main__":
    main()
