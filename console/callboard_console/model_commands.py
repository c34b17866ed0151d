"""`callboard model`: the model files on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from callboard_console.exits import CommandError, Exit
from callboard_console.fetching import fetch_shown
from callboard_providers.models import local_files

models = typer.Typer(
    help="The models that run on this machine: fetch, list, find and remove their files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="A name from `callboard model list`.")]
NameOrDefault = Annotated[
    str | None, typer.Argument(help="A name from `callboard model list`; the default without one.")
]


def chosen(name: str | None) -> str:
    """A known model's name, the default's without one."""
    return local_files.known(name or local_files.default_name()).name


@models.command("fetch")
def fetch_model(name: NameOrDefault = None) -> None:
    """Fetch a model's file, unless it is here, and print its path."""
    wanted = chosen(name)
    print(local_files.path(wanted) or fetch_shown(wanted))


@models.command("list")
def list_models() -> None:
    """List the models, and whether they are here."""
    default = local_files.default_name()
    for name, file in local_files.list_models().items():
        size_mb = local_files.MODELS[name].size_bytes // 1_000_000
        here = "here" if file else "not fetched"
        mark = "  (default)" if name == default else ""
        print(f"{name:20}  {size_mb:5} MB  {here}{mark}")


@models.command("path")
def model_path(name: NameOrDefault = None) -> None:
    """Print the path of a model's file."""
    wanted = chosen(name)
    file = local_files.path(wanted)
    if file is None:
        raise CommandError(
            f"{wanted} is not here: callboard model fetch {wanted}", code=Exit.NO_MODEL
        )
    print(file)


@models.command("remove")
def remove_model(name: Name) -> None:
    """Remove a model's file."""
    gone = local_files.remove(chosen(name))
    print(f"removed {name}" if gone else f"{name} was not here")
