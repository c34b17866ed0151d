"""Fetching a model file while showing how far it is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from callboard.errors import ModelError
from callboard_console.exits import CommandError, Exit
from callboard_providers.models.local_fetch import fetch
from callboard_providers.models.local_files import MODELS, known

STEP_PERCENT = 10  # between two lines where there is no terminal


def fetch_shown(name: str, *, quiet: bool = False) -> Path:
    """The file of a model, fetched with its progress on stderr where it is not here yet.

    Raises:
        CommandError: it cannot be had.
    """
    console = Console(stderr=True, quiet=quiet)
    size_mb = known(name).size_bytes // 1_000_000
    say = f"fetching the model {name} ({size_mb} MB, {MODELS[name].licence}), once"
    console.print(say, highlight=False, soft_wrap=True)
    try:
        return _with_bar(name, console) if console.is_terminal else _with_lines(name, console)
    except ModelError as error:
        raise CommandError(str(error), code=Exit.NO_MODEL) from error
    except OSError as error:
        reason = f"the model cannot be stored: {error}; set CALLBOARD_MODEL_DIR to another folder"
        raise CommandError(reason, code=Exit.NO_MODEL) from error


def _with_bar(name: str, console: Console) -> Path:
    columns = (
        TextColumn("  "),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=known(name).size_bytes)
        return fetch(name, lambda so_far, _: bar.update(task, completed=so_far))


def _with_lines(name: str, console: Console) -> Path:
    told = 0

    def tell(so_far: int, in_all: int) -> None:
        nonlocal told
        percent = so_far * 100 // in_all
        if percent >= told + STEP_PERCENT:
            told = percent - percent % STEP_PERCENT
            console.print(f"  {told} %", highlight=False)

    return fetch(name, tell)
