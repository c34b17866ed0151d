"""Every asynchronous test runs on asyncio and on trio, on a clock that jumps over sleeps.

Tests with real processes, sockets or threads are marked `real_clock`; those of the providers and
of the command line always are, and so are the live ones. A test for one backend only says
`@pytest.mark.parametrize("anyio_backend", ["asyncio"])`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard.testing.virtual_time import BackendChoice, virtual_backend

HERE = Path(__file__).parent
REAL = (HERE / "providers", HERE / "console")
PROCESS_TIMEOUT_S = 180  # processes and sockets take what a busy machine gives them
LIVE_TIMEOUT_S = 900  # fetching and loading a model takes minutes on a slow line


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in REAL):
            item.add_marker("real_clock")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(PROCESS_TIMEOUT_S))
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.timeout(LIVE_TIMEOUT_S), append=False)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> BackendChoice:
    """The backend that anyio's pytest plugin runs an asynchronous test on."""
    node: pytest.Item = request.node
    if node.get_closest_marker("real_clock") or node.get_closest_marker("live"):
        return request.param, {}
    return virtual_backend(request.param)
