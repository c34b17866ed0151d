"""Programs that work on files: which of their words are paths, and what they do with them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_code import sed_scripts
from callboard_mixins.tool_guard.shell_options import running_findings
from callboard_mixins.tool_guard.shell_paths import ask, deny, word_findings
from callboard_mixins.tool_guard.shell_programs import FETCHERS, USES, Use
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word, literal

_TEXT_FIRST = frozenset("grep egrep fgrep rg ag ack zgrep sed awk gawk mawk nawk jq yq".split())
_TEXT_OPTIONS = {
    "grep": "-e --regexp -m -A -B -C --include --exclude --exclude-dir --color".split(),
    "rg": "-e -g --glob -t --type -T -A -B -C -m -r --replace --sort -j".split(),
    "jq": "--arg --argjson --indent".split(),
    "find": "-name -iname -path -ipath -regex -iregex -wholename".split(),
    "head": ["-n", "-c", "--lines", "--bytes"],
    "tail": ["-n", "-c", "--lines", "--bytes"],
    "cut": ["-d", "-f", "-c", "-b", "--delimiter", "--fields"],
    "sort": ["-k", "-t", "--key", "--field-separator"],
    "tree": ["-I", "-P", "-L"],
    "ls": ["-I"],
    "tar": ["--exclude", "--transform"],
    "du": ["--exclude", "-d"],
    "diff": ["-x", "--exclude", "-I", "-U", "--label"],
    "awk": ["-F", "-v"],
    "pytest": ["-k", "-m", "-n", "-p"],
    "base64": ["-w"],
    "date": ["-d"],
    "touch": ["-d", "-t"],
    "watch": ["-n"],
}
_OUTPUTS = ("-o", "--output", "--out", "--output-file", "-O")
_FILTERS = frozenset("-name -iname -path -ipath -regex -iregex -newer -mtime -mmin -size".split())
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive")


def file_findings(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """What a program does with the paths among its words."""
    name = command.program or ""
    if name in USES and USES[name] is not Use.NONE:
        yield from running_findings(command)
    use = USES.get(name)
    if use is None and name in FETCHERS:
        yield from _sent(command, places)
        return
    if use is None:
        use = Use.BUILD
    if name in ("cd", "pushd"):
        yield from _change(command, places)
    elif name == "for":
        for word in command.words:
            if word.value is not None:
                yield from word_findings(word, Use.READ, command, places)
    elif name in ("time", "strace", "ltrace", "script", "flock"):
        yield from _own_file(command, places)
    elif use is Use.NONE or name in ("git", "sh", "bash", "dash", "zsh"):
        return
    elif name == "find":
        yield from _find(command, places)
    elif name in _RULES:
        yield from _RULES[name](command, places)
    else:
        yield from _operands(command, use, places)


def _own_file(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """The file that a wrapper writes itself."""
    words = command.words
    for at, word in enumerate(words):
        if word.known in ("-o", "--output") and at + 1 < len(words):
            yield from word_findings(words[at + 1], Use.WRITE, command, places)
        elif word.known.startswith(("-o", "--output=")) and command.program != "flock":
            yield from word_findings(word, Use.WRITE, command, places)
    if command.program in ("script", "flock"):
        operand = next((w for w in words if not w.known.startswith("-")), None)
        last = words[-1] if command.program == "script" and words else operand
        if last is not None and "/" in last.known:
            yield from word_findings(last, Use.WRITE, command, places)


def _operands(command: ShellCommand, use: Use, places: Places) -> Iterator[Finding]:
    recursive = any(_RECURSIVE.fullmatch(w.known) for w in command.words)
    for word, own in _paths(command, use):
        yield from word_findings(word, own, command, places, recursive=recursive)
    if any(word.known == "--no-preserve-root" for word in command.words):
        yield deny("destructive", "lifts the guard of the root")


def _paths(command: ShellCommand, use: Use) -> list[tuple[Word, Use]]:
    """The words that may be paths, each with what is done with it."""
    name = command.program or ""
    options = _TEXT_OPTIONS.get(name.removeprefix("e").removeprefix("f"), [])
    words, found = list(command.words), list[tuple[Word, Use]]()
    if name == "sed":
        _, begins = sed_scripts(command)
        inplace = any(re.match(r"-[nErsuz]*i|--in-place", w.known) for w in words[:begins])
        return [(word, Use.WRITE if inplace else Use.READ) for word in words[begins:]]
    skip = name in _TEXT_FIRST and not any(w.known in ("-e", "-f", "--files") for w in words)
    at, ended = 0, False
    while at < len(words):
        word = words[at]
        if not ended and word.known.startswith("-") and word.known != "-":
            ended = word.known == "--"
            if word.known in options:
                at += 1
            elif word.known in _OUTPUTS and at + 1 < len(words):
                at += 1
                found.append((words[at], Use.WRITE))
            else:
                found.append((word, _option_use(word, use)))
        elif skip:
            skip = False
        else:
            found.append((word, use))
        at += 1
    return found


def _option_use(word: Word, use: Use) -> Use:
    if use is Use.BUILD and word.known.startswith(("-I", "-L", "-isystem")):
        return Use.READ
    return Use.WRITE if word.known.startswith(("-o", "--out")) else use


def _sent(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """Files that are sent out, or that what comes in is written to."""
    for at, word in enumerate(command.words):
        before = command.words[at - 1].known if at else ""
        if before in ("-o", "--output", "-O", "--output-document", "-P"):
            yield from word_findings(word, Use.WRITE, command, places)
        elif word.value is not None:
            for path in re.findall(r"@([^;,]+)", word.value) or [word.value]:
                yield from word_findings(literal(path), Use.READ, command, places)


def _change(command: ShellCommand, places: Places) -> Iterator[Finding]:
    operands = [w for w in command.words if w.one not in ("-P", "-L", "--", "-e")]
    if not operands:
        operands = [literal("~")]
    if operands[0].one != "-":
        yield from word_findings(operands[0], Use.READ, command, places)


def _find(command: ShellCommand, places: Places) -> Iterator[Finding]:
    begins = next(
        (
            at
            for at, w in enumerate(command.words)
            if re.match(r"-[a-zKO]|[(!]", w.known) and w.known not in ("-H", "-L", "-P")
        ),
        len(command.words),
    )
    roots = [w for w in command.words[:begins] if w.known not in ("-H", "-L", "-P")]
    values = command.arguments[begins:]
    deletes = "-delete" in values
    for root in roots or [literal(".")]:
        use = Use.DELETE if deletes and root.one not in (".", "./") else Use.READ
        yield from word_findings(root, use, command, places, recursive=True)
    if (deletes or "rm" in values) and not _picks(values):
        yield ask("destructive", "deletes everything that it finds", Severity.HIGH)
    for word in command.words[begins:]:
        if word.known in ("-fprint", "-fprintf", "-fls", "-fprint0", "-files0-from"):
            yield ask("outside", f"find writes or reads a file by {word.known!r}")
        elif word.value is None:
            yield ask("dynamic", f"what find does depends on {word.source!r}")


def _picks(values: tuple[str | None, ...]) -> bool:
    """Whether a search is for some files only."""
    if {"-o", "-or", ",", "!", "-not"} & set(values):
        return False
    pairs = itertools.pairwise(values)
    return any(option in _FILTERS and (value or "").strip("*.?/") != "" for option, value in pairs)


def _copy(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """`cp`: what is copied is read, the last operand written."""
    operands = [w for w in command.words if not w.known.startswith("-")]
    targeted = any(w.known.startswith(("-t", "--target")) for w in command.words)
    last = operands[-1] if operands and not targeted else None
    recursive = any(_RECURSIVE.fullmatch(w.known) for w in command.words)
    for word in command.words:
        use = Use.READ if last is not None and word is not last else Use.WRITE
        yield from word_findings(
            word, use, command, places, recursive=recursive and use is Use.READ
        )


def _move(command: ShellCommand, places: Places) -> Iterator[Finding]:
    operands = [w for w in command.words if not w.known.startswith("-")]
    for word in operands[:-1]:
        yield from word_findings(word, Use.DELETE, command, places)
    for word in operands[-1:]:
        yield from word_findings(word, Use.WRITE, command, places)
    if any(w.known.startswith("--target") or w.known == "-t" for w in command.words):
        yield from _operands(command, Use.WRITE, places)


def _mode(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """`chmod`, `chown`: the first operand is no path."""
    words = [w for w in command.words if not re.fullmatch(r"-[RvcfhHLP]+|--[a-z-]+", w.known)]
    mode = words[0] if words else literal("")
    recursive = any(_RECURSIVE.fullmatch(w.known) for w in command.words)
    if mode.value is None:
        yield ask("dynamic", f"what {command.written!r} does depends on {mode.source!r}")
    elif command.program == "chmod" and re.search(r"[+=][a-z]*s|^[2-7]\d{3}$", mode.value):
        yield ask("privilege", "lets a program run with the rights of its owner", Severity.HIGH)
    for word in words[1:]:
        yield from word_findings(word, Use.WRITE, command, places, recursive=recursive)


def _archive(command: ShellCommand, places: Places) -> Iterator[Finding]:
    asks = (
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "-I",
        "-P",
        "-T",
        "--absolute-names",
        "--info-script",
        "--new-volume-script",
        "-F",
        "--rsh-command",
        "-TT",
        "--unzip-command",
        "--rmt-command",
    )
    for word in command.words:
        if word.known.startswith(asks):
            yield ask(
                "code", f"{command.program!r} may run a program by {word.known!r}", Severity.HIGH
            )
    yield from _operands(command, Use.WRITE, places)


def _mirror(command: ShellCommand, places: Places) -> Iterator[Finding]:
    for word in command.words:
        if re.match(r"-[a-zA-Z]*e|--rsh|--rsync-path", word.known):
            yield ask("code", "rsync may run a program", Severity.HIGH)
        elif re.match(r"[\w.@-]+::?", word.known) or "://" in word.known:
            yield ask("network", "rsync talks to the network")
        elif word.known.startswith(("--delete", "--remove-source")):
            yield ask("destructive", "rsync deletes files")
    yield from _copy(command, places)


_RULES = {
    "cp": _copy,
    "install": _copy,
    "ditto": _copy,
    "mv": _move,
    "chmod": _mode,
    "chown": _mode,
    "chgrp": _mode,
    "tar": _archive,
    "zip": _archive,
    "unzip": _archive,
    "cpio": _archive,
    "rsync": _mirror,
}
