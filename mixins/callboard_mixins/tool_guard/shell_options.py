"""Options and words by which programs that work on files run others. Called by `shell_files`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.shell_paths import ask
from callboard_mixins.tool_guard.shell_programs import RUNNING_OPTIONS, USES, Use
from callboard_mixins.tool_guard.shell_script import ShellCommand

_OWN_OPTIONS = frozenset(
    {("split", "--filter"), ("cmake", "-E"), ("tar", "-I"), ("node", "-r"), ("node", "--require")}
)
_INPUTS = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/dev/fd/63"})
_SQLITE_ACTS = re.compile(
    r"^\s*\.(?:shell|system|output|once|import|load|read|backup|restore|save|open|log|archive)"
    r"|readfile|writefile|load_extension|attach|\bedit\s*\(|-cmd",
    re.IGNORECASE | re.MULTILINE,
)


def running_findings(command: ShellCommand) -> Iterator[Finding]:
    """Options and words by which a program that works on files runs another one."""
    name = command.program or ""
    for at, word in enumerate(command.words):
        option = word.known.split("=", 1)[0]
        own = option in RUNNING_OPTIONS or (name, option) in _OWN_OPTIONS
        after = command.words[at - 1].known if at else ""
        from_input = name in ("make", "gmake") and word.known.removeprefix("-f") in _INPUTS
        if own and name != "git" and "--version" not in command.arguments:
            yield ask("code", f"{name!r} may run a program by {option!r}", Severity.HIGH)
        elif from_input and (after == "-f" or word.known.startswith("-f")):
            yield ask("code", "make is given its rules on the input", Severity.HIGH)
        elif name == "sqlite3" and _SQLITE_ACTS.search(word.value or ".shell"):
            yield ask("code", "sqlite3 may run a program or touch other files")
        elif name in ("jq", "yq") and re.search(r"\benv\b|\$ENV|load|input_filename", word.known):
            yield ask("secrets", f"{name!r} may show all variables, secrets among them")
        elif USES[name] is Use.BUILD and re.search(
            r"[a-z]://|^\w[\w.-]*/\S+@(?:latest|v\d)", word.known
        ):
            yield ask("network", f"{name!r} may fetch {word.known!r}")
    if name == "ps" and any(re.fullmatch(r"[a-z]*e[a-z]*", w.known) for w in command.words[:1]):
        yield ask("secrets", "'ps' shows the variables of other programs")
