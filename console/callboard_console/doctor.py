"""`callboard doctor`: what is installed, which models can be reached, and what mends the rest."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.text import Text

from callboard_console.exits import Exit
from callboard_providers.models import local_files

EXTRAS = (("openai", "openai"), ("xllamacpp", "local"), ("rich", "cli"), ("typer", "cli"))
GIB = 1 << 30
REACH_S = 10.0
STYLES = {"ok": "green", "missing": "yellow", "failed": "red", "": "dim"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `answers` says that a question could be asked through it."""

    state: str  # "ok", "missing", "failed", or "" for a plain fact
    what: str
    found: str
    remedy: str = ""
    answers: bool = False


def examine(*, reach: bool) -> Exit:
    """Print the report. NO_MODEL if no model can answer a question."""
    console = Console(highlight=False, soft_wrap=True)
    answers = False
    for title, findings in (
        ("This machine", machine()),
        ("Packages", packages()),
        ("Models", models(reach=reach)),
    ):
        console.print(Text(title, style="bold"))
        for finding in findings:
            answers = answers or finding.answers
            console.print(line(finding))
    ready = "`callboard ask` can answer." if answers else "No model can answer yet."
    console.print(Text(ready, style="bold green" if answers else "bold red"))
    return Exit.ANSWERED if answers else Exit.NO_MODEL


def line(finding: Finding) -> Text:
    """A finding as one line, with its remedy."""
    text = Text.assemble(
        "  ",
        (f"{finding.state:8}", STYLES[finding.state]),
        f"{finding.what:26}",
        finding.found,
    )
    return text.append(f"  ->  {finding.remedy}", style="cyan") if finding.remedy else text


def machine() -> Iterator[Finding]:
    """Python, the processors, memory, and room for model files."""
    yield Finding("", "python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    yield Finding("", "processors", str(os.cpu_count()))
    memory = local_files.available_bytes()
    if memory is not None:
        yield Finding("", "memory available", f"{memory / GIB:.1f} GiB")
    folder = local_files.model_dir()
    free = shutil.disk_usage(existing(folder)).free
    yield Finding("", "room for models", f"{free / GIB:.1f} GiB in {folder}")


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return folder if folder.exists() else existing(folder.parent)


def packages() -> Iterator[Finding]:
    """Callboard and what its extras bring."""
    for package, extra in (("callboard", ""), *EXTRAS):
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            remedy = f"pip install 'callboard[{extra}]'" if extra else "pip install callboard"
            yield Finding("missing", package, "not installed", remedy)


def models(*, reach: bool) -> Iterator[Finding]:
    """The local models, and the provider whose key is set."""
    engine = has("xllamacpp") and has("openai")
    default = local_files.default_name()
    for name, file in local_files.list_models().items():
        mark = " (default)" if name == default else ""
        if file is not None:
            yield Finding("ok", f"local:{name}", f"{file}{mark}", answers=engine)
        else:
            remedy = f"callboard model fetch {name}"
            yield Finding("missing", f"local:{name}", f"not fetched{mark}", remedy)
    yield provider(reach=reach)


def has(package: str) -> bool:
    """Whether a package is installed."""
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def provider(*, reach: bool) -> Finding:
    """OpenAI, or the compatible server that OPENAI_BASE_URL names."""
    where = os.environ.get("OPENAI_BASE_URL", "the vendor's own address")
    if not os.environ.get("OPENAI_API_KEY"):
        return Finding("missing", "openai", "no key is set", "export OPENAI_API_KEY=...")
    if not reach:
        return Finding("", "openai", f"a key is set for {where}; not asked")
    if not has("openai"):
        return Finding("missing", "openai", "a key is set", "pip install 'callboard[openai]'")
    problem = knock()
    if problem is None:
        return Finding("ok", "openai", f"{where} answers", answers=True)
    remedy = "check OPENAI_API_KEY, OPENAI_BASE_URL and the network"
    return Finding("failed", "openai", f"{where}: {problem}", remedy)


def knock() -> str | None:
    """Ask the provider for its list of models; what went wrong, or None."""
    import openai

    try:
        with openai.OpenAI(timeout=REACH_S, max_retries=0) as client:
            client.models.list()
    except openai.APIStatusError as error:
        return f"it answered with status {error.status_code}"
    except openai.OpenAIError as error:
        return " ".join(str(error).split())
    return None
