"""The commands of `callboard` and their options."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from callboard import __version__
from callboard_console.agents_commands import agents
from callboard_console.approvals_commands import approvals
from callboard_console.ask import QUESTION, Wish, read_question
from callboard_console.ask import ask as ask_agent
from callboard_console.audit_commands import audit
from callboard_console.chat import chat as hold_chat
from callboard_console.cluster_commands import cluster
from callboard_console.deadletter_commands import deadletters
from callboard_console.doctor import examine
from callboard_console.engine_commands import engine
from callboard_console.exits import CODES, CommandError
from callboard_console.guard_commands import guard
from callboard_console.journal_commands import journal
from callboard_console.logs import LogLevel, configure_logs
from callboard_console.model_commands import models
from callboard_console.replay_commands import ENDS, replay
from callboard_console.run_commands import ENDS as RUN_ENDS
from callboard_console.run_commands import run
from callboard_console.worker_commands import worker

app = typer.Typer(
    name="callboard",
    help="Agents that reason and act, on this machine or with a provider.",
    epilog=CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(models, name="model")
app.add_typer(journal, name="journal")
app.add_typer(guard, name="guard")
app.add_typer(approvals, name="approvals")
app.add_typer(audit, name="audit")
app.add_typer(deadletters, name="deadletters")
app.add_typer(engine, name="engine")
app.add_typer(cluster, name="cluster")


MayEdit = Annotated[bool, typer.Option("--edit", help="Let it change files in that folder.")]
MayRun = Annotated[
    bool,
    typer.Option("--shell", help="Let it run commands in that folder, in a sandbox (bubblewrap)."),
]


@app.command(epilog=CODES)
def ask(
    question: Annotated[
        str, typer.Argument(help="What to ask; - reads it from standard input.", show_default=False)
    ] = QUESTION,
    *,
    model: Annotated[
        str | None,
        typer.Option(help="KIND:NAME, such as local, openai:gpt-5 or scripted:answers.json."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="An agent of your own: a class, or a function that may take model=.",
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A tool of your own; may be repeated."),
    ] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in/--no-built-in", help="Offer the built-in tools.")
    ] = True,
    folder: Annotated[
        str | None,
        typer.Option(help="What the file tools may read; this folder without it."),
    ] = None,
    edit: MayEdit = False,
    shell: MayRun = False,
    max_iters: Annotated[
        int | None, typer.Option(min=1, help="Most turns before a summary; 10 without it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False,
    log_level: Annotated[
        LogLevel, typer.Option(help="debug tells each step, to stderr.")
    ] = LogLevel.WARNING,
) -> None:
    """Ask a question; the agent may use a clock, a calculator, and files below this folder."""
    configure_logs(log_level)
    wish = Wish(
        question=read_question() if question == "-" else question,
        model=model,
        agent=agent,
        tools=tool or (),
        built_in=built_in,
        folder=folder,
        may_edit=edit,
        may_run=shell,
        max_iters=max_iters,
        as_json=as_json,
        quiet=quiet,
        log_level=log_level,
    )
    raise typer.Exit(ask_agent(_checked(wish)))


@app.command(epilog=CODES)
def chat(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:AGENT]",
            help="An agent of your own: a class, or a function that takes model= and journal=.",
        ),
    ] = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(help="KIND:NAME, such as local, openai:gpt-5 or scripted:answers.json."),
    ] = None,
    session: Annotated[
        str, typer.Option(metavar="NAME", help="The conversation to begin or to pick up.")
    ] = "default",
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A tool of your own; may be repeated."),
    ] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in/--no-built-in", help="Offer the built-in tools.")
    ] = True,
    folder: Annotated[
        str | None,
        typer.Option(help="What the file tools may read; this folder without it."),
    ] = None,
    edit: MayEdit = False,
    shell: MayRun = False,
    max_iters: Annotated[
        int | None, typer.Option(min=1, help="Most turns before a summary; 10 without it.")
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(help="debug tells each step, to stderr.")
    ] = LogLevel.WARNING,
) -> None:
    """Talk with an agent. What you type while it works steers it, Ctrl-C interrupts it; the
    conversation is kept and picked up again. /help tells the commands.
    """
    configure_logs(log_level)
    wish = Wish(
        question="",
        model=model,
        agent=agent,
        tools=tool or (),
        built_in=built_in,
        folder=folder,
        may_edit=edit,
        may_run=shell,
        max_iters=max_iters,
        as_json=False,
        quiet=False,
        log_level=log_level,
    )
    raise typer.Exit(hold_chat(_checked(wish), session))


def _checked(wish: Wish) -> Wish:
    if wish.agent is None:
        return wish
    for option, is_given in (
        ("--tool", bool(wish.tools)),
        ("--folder", wish.folder is not None),
        ("--edit", wish.may_edit),
        ("--shell", wish.may_run),
        ("--no-built-in", not wish.built_in),
    ):
        if is_given:
            raise CommandError(
                f"{option} goes with the built-in agent: leave out {option} or the agent"
            )
    return wish


app.command(epilog=ENDS)(replay)
app.command(epilog=RUN_ENDS)(run)
app.command(epilog=RUN_ENDS)(worker)
app.command()(agents)


@app.command()
def doctor(
    *,
    reach: Annotated[
        bool, typer.Option("--reach/--no-reach", help="Ask the providers whether they answer.")
    ] = True,
) -> None:
    """Tell what is installed, which models can be reached, and what mends the rest."""
    raise typer.Exit(examine(reach=reach))


@app.command()
def version() -> None:
    """Tell the version."""
    print(f"callboard {__version__} on Python {platform.python_version()}")
