"""Interpreters: where the code that they run stands, and which of it the rules can read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_paths import ask, word_findings
from callboard_mixins.tool_guard.shell_programs import CODE_OPTIONS, INTERPRETERS, Use
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_wrappers import SHELLS

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_AWK_ACTS = re.compile(r"system|getline|@|ARGV|ENVIRON|\|&|\bprintf?\b[^;}\n]*>|close|fflush")
_AWK_REGEX = re.compile(r"/(?:[^/\\\n]|\\.)*/|\"(?:[^\"\\\n]|\\.)*\"")
_SED_PLAIN = frozenset("pdqnNgGhHxDPlz=QF")
_SED_TEXT = frozenset("aic")
_SED_LABEL = frozenset("btT:")
_ASKING = frozenset({"--version", "-V", "-v", "--help", "-h", "version", "env", "-vV"})
_VALUED = frozenset(  # options of interpreters whose value is the next word
    "-W -X -Q -r --require --import --loader -C --conditions --env-file -I -M -d -l -z -K".split()
)
_MODULES_ASKED = frozenset(
    "http.server smtpd ftplib telnetlib pty code pdb cProfile profile timeit trace runpy "
    "webbrowser idlelib turtledemo pip_audit this ensurepip zipapp twine".split()
)


def code_findings(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """What an interpreter is told to run, as far as it is no file of the workspace."""
    name = command.program or ""
    if name in _AWKS:
        yield from _awk(command)
    elif name == "sed":
        yield from _sed(command)
    elif name in ("source", ".") or (name in SHELLS and command.words):
        yield from _script_file(command, places)
    elif name in INTERPRETERS or re.fullmatch(r"python3?\.\d+|node\d+|perl5.*", name):
        yield from _interpreter(command, name)


def _script_file(command: ShellCommand, places: Places) -> Iterator[Finding]:
    operand = next((w for w in command.words if not w.known.startswith(("-", "+"))), None)
    code = any(re.fullmatch(r"-[a-zA-Z]*c", w.known) for w in command.words)
    if operand is not None and not code and command.program not in (None, ""):
        yield from word_findings(operand, Use.BUILD, command, places)


def _interpreter(command: ShellCommand, name: str) -> Iterator[Finding]:
    words = command.words
    if words and all(word.known in _ASKING for word in words):
        return
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = word.one
        if value is None:
            yield ask("dynamic", f"what {name!r} runs depends on {word.source!r}")
            return
        if value.startswith("-m") and name.startswith(("python", "pypy")):
            module = value[2:] or (rest[0].one if rest else None)
            if module is None or module in _MODULES_ASKED:
                yield ask("code", f"{name!r} runs the module {module!r}")
            return
        if value in _VALUED and rest:
            rest.pop(0)
            continue
        plain = name.startswith("python") and value in ("-B", "-i", "-x", "-R")
        if not plain and (
            value in CODE_OPTIONS or re.match(r"-[a-zA-Z]*[ce]$|--?eval=|-[ce].", value)
        ):
            yield ask("code", f"{name!r} runs code from the command line")
            return
        if value in ("-", "/dev/stdin"):
            break
        if not value.startswith("-"):
            return
    yield ask("code", f"{name!r} runs code that it reads")


def _awk(command: ShellCommand) -> Iterator[Finding]:
    words = list(command.words)
    if words and all(word.known in _ASKING for word in words):
        return
    while words and words[0].known.startswith("-"):
        option = words.pop(0).known
        if option in ("-F", "-v") and words:
            words.pop(0)
        elif option not in ("--", "-n") and not re.match(r"-[Fv].", option):
            yield ask("code", f"awk is given {option!r}")
            return
    program = words[0].one if words else None
    if program is None or _AWK_ACTS.search(program):
        yield ask("code", "the awk program may run commands or write files")
    elif re.search(r"(?<!\|)\|(?!\|)", _AWK_REGEX.sub("", program)):
        yield ask("code", "the awk program may run commands")


def sed_scripts(command: ShellCommand) -> tuple[list[str | None], int]:
    """The scripts of a sed command, and at which word its files begin."""
    scripts: list[str | None] = []
    at = 0
    words = command.words
    while at < len(words) and words[at].known.startswith("-") and words[at].known != "-":
        known = words[at].known
        if known in ("-e", "--expression") or re.fullmatch(r"-[nErsuz]*e", known):
            scripts.append(words[at + 1].one if at + 1 < len(words) else None)
            at += 1
        elif known.startswith("--expression="):
            value = words[at].one
            scripts.append(value and value.partition("=")[2])
        elif not re.fullmatch(
            r"-[nErsuz]*(?:i[\w.~]*)?|--(?:quiet|silent|in-place(?:=.*)?"
            r"|regexp-extended|posix|debug|version|null-data)",
            known,
        ):
            scripts.append(None)
        at += 1
    if not scripts and at < len(words):
        scripts.append(words[at].one)
        at += 1
    return scripts, at


def _sed(command: ShellCommand) -> Iterator[Finding]:
    scripts, _ = sed_scripts(command)
    if any(script is None or not sed_is_plain(script) for script in scripts):
        yield ask("code", "the sed script may run commands or touch other files", Severity.MEDIUM)


def sed_is_plain(script: str) -> bool:
    """Whether a sed script only edits text: no `e`, `w` or `r`, as command or as flag."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}!":
            at += 1
            continue
        at = _after_address(script, at)
        if at < 0:
            return False
        letter = script[at : at + 1]
        if letter in ("", " ", "\t", "\n", ";", "{", "}", "!"):
            continue
        if letter in "sy":
            at = _after_substitution(script, at)
        elif letter in _SED_TEXT:
            at = len(script) if "\\" in script[at:] else (script.find("\n", at) % (len(script) + 1))
        elif letter in _SED_PLAIN:
            at += 1
        elif letter in _SED_LABEL:
            found = re.match(r"[btT:][ \t]*\w*", script[at:])
            at += found.end() if found else 1
        else:
            return False
        if at < 0:
            return False
    return True


def _after_address(script: str, at: int) -> int:
    """Where an address ends that begins here, if one does; -1 where it does not end."""
    found = re.compile(r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|[,+~ \t])+").match(script, at)
    return found.end() if found else at


def _after_substitution(script: str, at: int) -> int:
    """Where `s/a/b/flags` ends; -1 with flags that run or write."""
    sign = re.escape(script[at + 1 : at + 2])
    if not sign or sign in ("\\\\", "\\\n"):
        return -1
    part = rf"(?:(?!{sign})[^\\]|\\.)*"
    found = re.compile(rf"[sy]{sign}{part}{sign}{part}{sign}([gpiIMm0-9]*)", re.DOTALL).match(
        script, at
    )
    if found is None or script[found.end() : found.end() + 1] not in (
        "",
        " ",
        ";",
        "}",
        "\n",
        "\t",
    ):
        return -1
    return found.end()
