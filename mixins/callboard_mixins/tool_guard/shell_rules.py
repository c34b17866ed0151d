"""From a parsed shell text to findings: what its commands would do. Pure but for looking at paths.

`shell_findings` is the way in. What is not known to be harmless is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.network import URL, judge_target, judge_url
from callboard_mixins.tool_guard.places import Kind, Places
from callboard_mixins.tool_guard.shell_code import code_findings
from callboard_mixins.tool_guard.shell_environment import (
    environment_findings,
    exported_later,
)
from callboard_mixins.tool_guard.shell_files import file_findings
from callboard_mixins.tool_guard.shell_git import git_findings
from callboard_mixins.tool_guard.shell_packages import package_findings
from callboard_mixins.tool_guard.shell_paths import ask, deny, word_findings
from callboard_mixins.tool_guard.shell_programs import (
    DECODERS,
    FETCHERS,
    INTERPRETERS,
    KILLERS,
    PERSISTENCE,
    PRIVILEGE,
    RUINOUS,
    SYSTEM,
    USES,
    Use,
)
from callboard_mixins.tool_guard.shell_script import Script, ShellCommand
from callboard_mixins.tool_guard.shell_wrappers import SHELLS

_SECRET_VARIABLE = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)\w*", re.IGNORECASE)
_FORK_BOMB = re.compile(r"([\w:.]+)\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*&?\s*\1|:\s*\|\s*:")
MOST_WORDS = 4_000  # each may be a path, and is looked up
MOST_PATTERNS = 60
LONGEST_WORD = 8_192  # characters, but for programs that only print theirs
_SPEAKERS = frozenset({"echo", "printf", "git"})
MOST_SEARCHED = 4096  # characters of the raw text
_RULE_FILES = {  # the files whose code these programs run without being told their names
    name: re.compile(pattern)
    for names, pattern in (
        ("make gmake", r"(?:GNU)?[Mm]akefile|.*\.mk"),
        ("npm npx yarn pnpm bun", r"package\.json|\.npmrc"),
        ("pytest py.test tox nox", r"conftest\.py|test_.*\.py|.*_test\.py|tox\.ini|noxfile\.py"),
        ("pip uv poetry hatch pdm", r"setup\.(?:py|cfg)"),
        ("cargo", r".*\.rs"),
        ("go", r".*\.go"),
        ("cmake", r"CMakeLists\.txt|.*\.cmake"),
        ("just task rake", r"[Jj]ustfile|Taskfile\.ya?ml|[Rr]akefile"),
    )
    for name in names.split()
}
_PROGRAM_NAME = re.compile(r"[\w.+@:\[\]-]+", re.ASCII)


def shell_findings(script: Script, text: str, places: Places) -> tuple[Finding, ...]:
    """What the commands of a text would do, worst first and each thing once. `where` is empty."""
    found: dict[Finding, None] = {}
    if script.problem is not None:
        found[ask("unparsed", f"not understood: {script.problem}", Severity.HIGH)] = None
    if _FORK_BOMB.search(text[:MOST_SEARCHED]):
        found[deny("destructive", "starts itself again and again")] = None
    words = [word for command in script.commands for word in command.words]
    if len(words) > MOST_WORDS or sum(word.pattern for word in words) > MOST_PATTERNS:
        found[ask("unparsed", "it has too many words to look at", Severity.HIGH)] = None
        return tuple(found)
    functions: set[tuple[str | None, tuple[str, ...]]] = set()
    written, exported = _written(script), exported_later(script)
    for command in script.commands:
        if command.program == "function":
            functions.add((command.words[0].one, command.via))
        local = {name for name, via in functions if command.via[: len(via)] == via}
        for finding in _command(command, places, local, written, exported):
            found[finding] = None
    order = list(Severity)
    return tuple(
        sorted(found, key=lambda f: (f.advice != "deny", -order.index(f.severity), f.text))
    )


def _command(
    command: ShellCommand,
    places: Places,
    local: set[str | None],
    written: set[str],
    exported: frozenset[str],
) -> Iterator[Finding]:
    yield from environment_findings(command, places, exported)
    yield from _redirections(command, places)
    yield from _origin(command)
    name = command.program
    if name is None:
        yield ask(
            "dynamic",
            f"which program {command.source[:80]!r} runs depends on the run",
            Severity.HIGH,
        )
        return
    if f"function {name}" in command.via:
        many = "pipe" in command.via
        found = deny if many else ask
        yield found("destructive", f"{name!r} starts itself again and again", Severity.HIGH)
    if name == "" or (name in local and "/" not in command.written):
        return
    if name not in _SPEAKERS and any(len(word.source) > LONGEST_WORD for word in command.words):
        yield ask("unparsed", "it has a word too long to look at", Severity.HIGH)
        return
    yield from _program(command, name, places)
    if _runs_written(command, name, written):
        yield ask("generated", f"{command.written!r} runs what the same text writes", Severity.HIGH)
    yield from code_findings(command, places)
    yield from git_findings(command, places)
    yield from package_findings(command)
    yield from file_findings(command, places)


def _program(command: ShellCommand, name: str, places: Places) -> Iterator[Finding]:
    """What is to be said of a program by its name alone."""
    if name in ("function", "alias"):
        yield from _redefined(command)
    if "/" in command.written:
        yield from _program_file(command, name, places)
    if any(_SECRET_VARIABLE.search(word.source) for word in command.words):
        yield ask("secrets", f"{name!r} is given a variable that may hold a secret")
    if name in KILLERS:
        yield from _kill(command, name)
    elif name in FETCHERS:
        yield from _fetch(command, name)
    else:
        yield from _by_name(command, name)


def _by_name(command: ShellCommand, name: str) -> Iterator[Finding]:
    if name.split(".", 1)[0] in RUINOUS:
        yield deny("destructive", f"{name!r} changes disks")
    elif name in PRIVILEGE:
        yield ask("privilege", f"{name!r} gets other rights", Severity.HIGH)
    elif name in SYSTEM and not _only_asks(command):
        yield ask("system", f"{name!r} changes the system", Severity.HIGH)
    elif name in PERSISTENCE and command.arguments != ("-l",):
        yield ask("persistence", f"{name!r} has something run later", Severity.HIGH)
    elif name in SYSTEM | PERSISTENCE:
        return
    elif name not in USES and "/" not in command.written:
        yield ask("unknown_program", f"{name!r} is not a program that the rules know")
    elif not _PROGRAM_NAME.fullmatch(name):
        yield ask("unknown_program", f"{name!r} is an unusual name of a program")


def _only_asks(command: ShellCommand) -> bool:
    """`systemctl status`, `ip addr`: subcommands that only look."""
    first = next((w.one for w in command.words if w.one and not w.one.startswith("-")), None)
    looks = {"status", "list", "show", "search", "info", "list-units", "is-active", "policy"}
    return first in looks or command.arguments == ("--version",)


def _redefined(command: ShellCommand) -> Iterator[Finding]:
    for word in command.words:
        name = (word.one or "").split("=", 1)[0]
        if name in USES or name in FETCHERS or command.program == "alias":
            yield ask("redefined", f"gives {name!r} another meaning", Severity.HIGH)


def _program_file(command: ShellCommand, name: str, places: Places) -> Iterator[Finding]:
    """A program that is named by its file: those of the system and of the workspace may run."""
    path = command.written.replace("\\", "").strip("'\"")
    for folder in command.folders:
        place = places.judge(path, folder=folder or ".")
        if place.kind is Kind.PUBLIC:
            if name not in USES and name not in FETCHERS | PRIVILEGE | SYSTEM | KILLERS:
                yield ask("unknown_program", f"{path!r} is not a program that the rules know")
        elif place.kind not in (Kind.INSIDE, Kind.HOOK) or folder is None:
            yield ask("outside", f"runs {path!r}, a program outside the workspace", Severity.HIGH)


def _redirections(command: ShellCommand, places: Places) -> Iterator[Finding]:
    for redirection in command.redirections:
        target = redirection.target
        if redirection.body is not None and _SECRET_VARIABLE.search(redirection.body.source):
            yield ask("secrets", "a here-document holds a variable that may hold a secret")
        if target is None or redirection.body is not None:
            continue
        copies = redirection.op.endswith("&") and (target.value or "").strip("-").isdigit()
        if copies or target.value == "-":
            continue
        use = Use.WRITE if redirection.writes else Use.READ
        yield from word_findings(target, use, command, places)


def _origin(command: ShellCommand) -> Iterator[Finding]:
    """Where the code of a shell or an interpreter comes from."""
    name = command.program or ""
    runs = frozenset[str]().union(command.fetched, *(word.runs for word in command.words))
    before = {c.program for c in command.upstream}
    executes = command.program is None or name in SHELLS or name in ("source", ".", "eval")
    if (executes and runs & FETCHERS) or (command.fetched & FETCHERS):
        yield deny("remote_code", "runs what comes from the network")
    elif executes and runs & DECODERS:
        yield deny("remote_code", "runs what it decodes, which hides what it is")
    takes = command.reads_commands or (name in INTERPRETERS and _no_operand(command))
    if takes and before & FETCHERS:
        yield deny("remote_code", f"{name!r} runs what comes from the network")
    elif takes and before & DECODERS and name not in ("sed", "awk", "gawk", "mawk"):
        yield deny("remote_code", f"{name!r} runs what is decoded, which hides what it is")
    elif command.reads_commands:
        yield ask("dynamic", f"{name!r} runs what it reads", Severity.HIGH)
    if name in FETCHERS and before & SHELLS:
        yield deny("remote_code", "gives somebody else a shell")


def _no_operand(command: ShellCommand) -> bool:
    return all(w.known in ("-", "-s") or w.known.startswith("--") for w in command.words)


def _kill(command: ShellCommand, name: str) -> Iterator[Finding]:
    targets = [w for w in command.words if not w.known.startswith("-")]
    own = all(w.source.strip('"') in ("$!", "$$") or w.known.startswith("%") for w in targets)
    listed = command.arguments in (("-l",), ("-L",))
    if not listed and not (name == "kill" and targets and own):
        yield ask("process", f"{name!r} ends processes, maybe those of others")


def _fetch(command: ShellCommand, name: str) -> Iterator[Finding]:
    values = command.arguments
    if values and all(value in ("--version", "-V", "--help", "-h") for value in values):
        return
    gives = name in ("nc", "ncat", "netcat") and any(
        re.fullmatch(r"-[a-z]*[ec][a-z]*|--exec|--sh-exec", word.known) for word in command.words
    )
    if gives or any("exec:" in (value or "").lower() for value in values):
        yield deny("remote_code", "gives somebody else a shell")
    for value in values:
        found = judge_url(value) if value and URL.fullmatch(value) else judge_target(value or "x")
        if found is not None and found.reach == "metadata":
            yield deny("network", f"{value!r} may tell the credentials of this machine")
    yield ask("network", f"{name!r} talks to the network")


def _written(script: Script) -> set[str]:
    """The names of the files that the text itself writes or fetches."""
    names: set[str] = set()
    for command in script.commands:
        for redirection in command.redirections:
            if redirection.writes and redirection.target and redirection.target.value:
                names.add(redirection.target.value)
        if command.program in ("tee", "cp", "mv", "install", "dd", "ln", "curl", "wget", "chmod"):
            names |= {
                word.value.removeprefix("of=") for word in command.words if word.value is not None
            }
    return {name.removeprefix("./").rsplit("/", 1)[-1] for name in names} - {"", "null", "1", "2"}


def _runs_written(command: ShellCommand, name: str, written: set[str]) -> bool:
    """Whether a command runs one of those files."""
    if "/" in command.written and name in written:
        return True
    if name in _RULE_FILES and any(_RULE_FILES[name].fullmatch(file) for file in written):
        return True
    if name not in SHELLS | INTERPRETERS | {"source", "."}:
        return False
    operand = next((w.value for w in command.words if not w.known.startswith("-")), None)
    name = (operand or "").rsplit("/", 1)[-1]
    return name in written or f"{name}.py" in written
