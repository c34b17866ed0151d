"""Leaving an engine: what ends the block goes on to whoever opened it."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard_providers.engines.sqlite import SqliteEngine

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]


async def test_what_is_raised_inside_the_block_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with SqliteEngine(tmp_path / "team.db"):
            raise ValueError("mine")
