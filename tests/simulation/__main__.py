"""`python -m tests.simulation --seeds A:B`: many cases, in several processes."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.simulation.search import failing_story, first_failure

CHUNK = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:10000", help="from:to, or one seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="go on after a failure")
    given = parser.parse_args()
    start, _, end = given.seeds.partition(":")
    return search(int(start), int(end or int(start) + 1), given.processes, goes_on=given.all)


def search(start: int, end: int, processes: int, *, goes_on: bool) -> int:
    began, done, failed = time.monotonic(), 0, 0
    with ProcessPoolExecutor(processes, initializer=_begin) as pool:
        chunks = {
            pool.submit(first_failure, at, min(at + CHUNK, end)): min(CHUNK, end - at)
            for at in range(start, end, CHUNK)
        }
        for chunk in as_completed(chunks):
            done += chunks[chunk]
            seed = chunk.result()
            if seed is not None:
                failed += 1
                print(failing_story(seed), end="\n\n", flush=True)
                if not goes_on:
                    pool.shutdown(cancel_futures=True)
                    break
    rate = done / (time.monotonic() - began)
    print(f"seeds {start}:{end}: {done} cases, {failed} chunks failed, {rate:.0f}/s")
    return 1 if failed else 0


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
