"""Interpreters: where the code that they run stands, and which of it the rules can read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_paths import ask, word_findings
from callboard_mixins.tool_guard.shell_programs import INTERPRETERS, Use
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word
from callboard_mixins.tool_guard.shell_wrappers import SHELLS, is_stream

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_AWK_ACTS = re.compile(r"system|getline|@|ARGV|ENVIRON|\|&|close|fflush")
_AWK_REGEX = re.compile(r"/(?:[^/\\\n]|\\.)*/|\"(?:[^\"\\\n]|\\.)*\"")
_SED_PLAIN = frozenset("pdqnNgGhHxDPlz=QF")
_SED_TEXT = frozenset("aic")
_SED_LABEL = frozenset("btT:")
_ASKING = frozenset({"--version", "-V", "-v", "--help", "-h", "version", "env", "-vV"})
_PYTHON_PLAIN = frozenset("bBdEhIOPqRsSuvVx?")
_MODULES_ASKED = frozenset(
    "http smtpd smtplib ftplib telnetlib nntplib poplib imaplib pty code codeop pdb cProfile "
    "profile timeit trace runpy webbrowser idlelib turtledemo pip_audit this antigravity ensurepip "
    "zipapp twine asyncio IPython ipykernel jupyter notebook wsgiref xmlrpc pydoc mailcap cgi "
    "bdb".split()
)
_NODE_PLAIN = (
    r"--test(?:-.*)?|--watch(?:-path=.*)?|--no-.*|--trace-(?!event-file).*|--enable-source-maps"
    r"|--max[-_]old[-_]space[-_]size=\d+|--stack-size=\d+|--unhandled-rejections=.*"
    r"|--(?:throw|pending)-deprecation|--experimental-(?!loader|default)[\w-]+"
    r"|--env-file(?:-if-exists)?=.*|--expose-gc|--preserve-symlinks.*|-c|--check"
)
_JULIA_PLAIN = r"--project(?:=.*)?|-t.*|--threads.*|-O\d?|--color=\w+|--startup-file=no|-q"
_PLAIN_OPTIONS = {  # what these interpreters may be given without running anything by it
    name: re.compile(pattern)
    for names, pattern in (
        ("node nodejs", _NODE_PLAIN),
        ("perl", r"-[wWtTcU]+|-I.+"),
        ("ruby", r"-[wWc]+|-W:?[\w-]+|-I.+|--yjit|--jit"),
        ("php", r"-[lvmn]|-q"),
        ("julia", _JULIA_PLAIN),
        ("Rscript", r"--vanilla|--no-.*|--slave|--quiet"),
        ("deno bun ts-node tsx elixir", r"--(?!eval|print|require|import)\w[\w-]*|-[AqL]+|-T"),
        ("lua luajit", r"-[vW]"),
    )
    for name in names.split()
}
_VERBOSE = frozenset({"-W", "-v", "-q", "--quiet", "--verbose"})


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
    code = any(re.fullmatch(r"[-+][a-zA-Z]*c[a-zA-Z]*", w.known) for w in command.words)
    if operand is None or code or command.program in (None, ""):
        return
    if is_stream(operand.known):
        yield ask("dynamic", f"{command.program!r} runs what it reads", Severity.HIGH)
    yield from word_findings(operand, Use.BUILD, command, places)


def _interpreter(command: ShellCommand, name: str) -> Iterator[Finding]:
    words = command.words
    if words and all(word.known in _ASKING for word in words):
        return
    if re.match(r"python|pypy", name):
        reason = _python(words)
    else:
        reason = _other(words, _PLAIN_OPTIONS.get(name.rstrip("0123456789.")))
    if reason:
        yield ask("code", f"{name!r} {reason}")


def _python(words: Sequence[Word]) -> str | None:
    """What is to be said of the options of Python; None where a file or a module is run."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = word.one
        if value is None:
            return f"runs something that depends on {word.source!r}"
        if not value.startswith("-") or value == "-":
            return "runs code that it reads" if value == "-" or is_stream(value) else None
        if value.startswith("--"):
            if value.split("=")[0] not in ("--check-hash-based-pycs", "--help-env", "--help-all"):
                return f"is given {value!r}"
            rest = rest[1:]
            continue
        for at, letter in enumerate(value[1:], 2):
            if letter == "m":
                module = value[at:] or (rest[0].one if rest else None)
                asked = module is None or module.split(".")[0] in _MODULES_ASKED
                return f"runs the module {module!r}" if asked else None
            if letter in "WX":
                rest = rest if value[at:] else rest[1:]
                break
            if letter not in _PYTHON_PLAIN:
                return "runs code from the command line"
    return "runs code that it reads"


def _other(words: Sequence[Word], plain: re.Pattern[str] | None) -> str | None:
    """The same for other interpreters, of which only these options are plain."""
    for at, word in enumerate(words):
        value = word.one
        if value is None:
            return f"runs something that depends on {word.source!r}"
        if value == "--" and at + 1 < len(words):
            continue
        if not value.startswith("-") or value in ("-", "--"):
            return "runs code that it reads" if value[:1] == "-" or is_stream(value) else None
        if value in ("--test", "--watch"):  # of node, which looks for files itself
            return None if plain and plain.fullmatch(value) else "runs code that it reads"
        if value not in _VERBOSE and not (plain and plain.fullmatch(value)):
            return f"may run code by its option {value[:40]!r}"
    return "runs code that it reads"


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
    if program is None or _AWK_ACTS.search(program) or _awk_writes(program):
        yield ask("code", "the awk program may run commands or write files")
    elif re.search(r"(?<!\|)\|(?!\|)", _AWK_REGEX.sub("", program)):
        yield ask("code", "the awk program may run commands")


def _awk_writes(program: str) -> bool:
    """Whether a print goes into a file; a comparison behind a print counts as one, too."""
    parts = [re.search(r"\bprintf?\b", part) for part in re.split(r"[;}\n]", program)]
    return any(">" in found.string[found.end() :] for found in parts if found)


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
