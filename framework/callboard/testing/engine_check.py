"""The conformance kit for engines: `await check_engine(new_store)`.

`new_store()` makes an empty store and returns a function that opens one more handle on it: what
two processes would do. The kit knows nothing but the port (`actors/engine.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import anyio

from callboard.errors import CallboardError, ConfigurationError
from callboard.testing import engine_addresses, engine_letters, engine_workers
from callboard.testing.engine_kit import Case, Open, Store

CASES: dict[str, Case] = {
    name: case
    for module in (engine_letters, engine_addresses, engine_workers)
    for name, case in module.CASES.items()
}


async def check_engine(
    new_store: Callable[[], Open],
    *,
    cases: Iterable[str] | None = None,
    lease_s: float = 10.0,
    pause: Callable[[Any], None] | None = None,
    timeout_s: float = 60.0,
) -> None:
    """Run every case (or the named ones, see CASES) on a fresh store each.

    `lease_s` is the lease of the engines that are opened; short ones make this quick. `pause` gets
    a worker and has it renew nothing more, as if its process had been stopped; without it the
    cases of workers that die are left out.

    Raises:
        AssertionError: naming each case that failed and what was wrong.
    """
    failed: list[str] = []
    for name in CASES if cases is None else cases:
        if name not in CASES:
            raise ConfigurationError(f"{name!r} is no case; there are {', '.join(CASES)}")
        if pause is None and name in engine_workers.WITH_DEATH:
            continue
        try:
            with anyio.fail_after(timeout_s):
                await CASES[name](Store(new_store(), lease_s, pause))
        except TimeoutError as late:
            failed.append(f"{name}: no end after {timeout_s:g} s ({late})")
        except (AssertionError, CallboardError) as problem:
            failed.append(f"{name}: {type(problem).__name__}: {problem}")
    if failed:
        raise AssertionError("the engine does not conform\n  " + "\n  ".join(failed))
