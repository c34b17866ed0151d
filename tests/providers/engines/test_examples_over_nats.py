"""The examples over an engine run on NATS by changing one string."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard_providers.engines.nats_server import NatsServers
from tests.run_script import run_script
from tests.test_examples import EXAMPLES, stated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
ENGINE = '"sqlite:team.db"'
OVER_AN_ENGINE = [path for path in EXAMPLES if ENGINE in path.read_text()]


def test_there_are_examples_over_an_engine() -> None:
    assert len(OVER_AN_ENGINE) >= 2


@pytest.mark.parametrize("path", OVER_AN_ENGINE, ids=lambda path: path.stem)
def test_an_example_ends_as_it_states_on_nats_too(path: Path, tmp_path: Path) -> None:
    with NatsServers(tmp_path / "nats") as servers:
        script = tmp_path / path.name
        script.write_text(path.read_text().replace(ENGINE, repr(servers.url)))
        done = run_script(script, cwd=tmp_path, timeout_s=60)  # a lease is 10 s
    lines = (done.stdout + done.stderr).strip().splitlines()
    assert lines[-1] == stated(path, "Last line", "")
