"""Programs that work on files: which of their words are paths, and what they do with them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_code import sed_scripts
from callboard_mixins.tool_guard.shell_options import is_one_of, running_findings
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
    "date": ["-d", "--date"],
    "touch": ["-d", "-t"],
    "watch": ["-n"],
}
_TEXT_GIVEN = re.compile(r"-(?!-)[a-zA-Z]*[ef]|--(?:reg|fi|from|exp)")  # and no operand is one
_OUTPUTS = ("-o", "--output", "--out", "--output-file", "-O")
_FILTERS = frozenset("-name -iname -path -ipath -regex -iregex -newer -mtime -mmin -size".split())
_READ_BY = {("jq", "-L"), ("ag", "-p"), ("jq", "--library-path"), ("rg", "--ignore-file")}
_LOOKED_IN = re.compile(r"-[IL]|-isystem|-Wl,(?!.*-(?:o|Map|-Map))")
_TARGETED = re.compile(r"-(?!-)[a-zA-Z]*t|--t")
SETUID = re.compile(r"^[ugoa]*[+=][a-z]*s|[,][ugoa]*[+=][a-z]*s|^0*[2-7]\d{3}$")
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
    if name in _WRAPPING:
        yield from _WRAPPING[name](command, places)
    elif use is Use.NONE or name in ("git", "sh", "bash", "dash", "zsh"):
        return
    elif name in _RULES:
        yield from _RULES[name](command, places)
    else:
        yield from _operands(command, use, places)


def _listed(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """What a loop goes through."""
    for word in command.words:
        if word.value is not None:
            yield from word_findings(word, Use.READ, command, places)


def _argument_file(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """The file that xargs takes its arguments from."""
    words = command.words
    for before, word in itertools.pairwise((literal(""), *words)):
        attached = re.match(r"-a(?=.)|--arg-file=", word.known)
        if attached or before.known in ("-a", "--arg-file"):
            path = literal(word.known[attached.end() :]) if attached else word
            yield from word_findings(path, Use.READ, command, places)


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
    skip = name in _TEXT_FIRST and not any(_TEXT_GIVEN.match(w.known) for w in words)
    at, ended = 0, False
    while at < len(words):
        word = words[at]
        if not ended and word.known.startswith("-") and word.known != "-":
            ended = word.known == "--"
            if word.known in options:
                at += 1
            elif (name, word.known) in _READ_BY and at + 1 < len(words):
                at += 1
                found.append((words[at], Use.READ))
            elif word.known in _OUTPUTS and at + 1 < len(words):
                at += 1
                found.append((words[at], Use.WRITE))
            else:
                found.append((word, _option_use(word, use)))
        elif skip and (word.value is not None or word.source != "..."):
            skip = False
        else:
            found.append((word, use))
        at += 1
    return found


def _option_use(word: Word, use: Use) -> Use:
    if use is Use.BUILD and _LOOKED_IN.match(word.known):
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
        (at for at, w in enumerate(command.words) if re.match(r"-[a-zK]|[(!]", w.known)),
        len(command.words),
    )
    roots = [w for w in command.words[:begins] if not re.match(r"-[HLPOD-]", w.known)]
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
    targeted = any(_TARGETED.match(w.known) for w in command.words)
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
    if any(_TARGETED.match(w.known) for w in command.words):
        yield from _operands(command, Use.WRITE, places)


def _mode(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """`chmod`, `chown`: the first operand is no path."""
    words = [w for w in command.words if not re.fullmatch(r"-[RvcfhHLP]+|--[a-z-]*", w.known)]
    mode = words[0] if words else literal("")
    recursive = any(_RECURSIVE.fullmatch(w.known) for w in command.words)
    if mode.value is None:
        yield ask("dynamic", f"what {command.written!r} does depends on {mode.source!r}")
    elif command.program == "chmod" and SETUID.search(mode.value):
        yield ask("privilege", "lets a program run with the rights of its owner", Severity.HIGH)
    for word in words[1:]:
        yield from word_findings(word, Use.WRITE, command, places, recursive=recursive)


_ARCHIVE_OPTIONS = (
    "--to-command --checkpoint-action --use-compress-program --absolute-names --info-script "
    "--new-volume-script --rsh-command --unzip-command --rmt-command --files-from --remove-files "
    "--absolute-paths".split()
)


def _archive(command: ShellCommand, places: Places) -> Iterator[Finding]:
    name = command.program
    for at, word in enumerate(command.words):
        cluster = re.fullmatch(r"-?[a-zA-Z0-9]+", word.known) if at == 0 else None
        short = re.match(r"-(?!-)\w*[IPTF]", word.known) or word.known.startswith(("-TT", "-:"))
        bundled = name == "tar" and cluster and re.search(r"[IPTF]", word.known)
        moves = name == "zip" and re.fullmatch(r"-[a-zA-Z]*m[a-zA-Z]*", word.known)
        if bundled or short or is_one_of(word.known, _ARCHIVE_OPTIONS):
            yield ask("code", f"{name!r} may run a program by {word.known!r}", Severity.HIGH)
        elif moves:
            yield ask("destructive", f"{name!r} deletes what it packs")
        elif name in ("tar", "cpio") and re.match(r"[\w.@-]+:(?!/?$)", word.known):
            yield ask("network", f"{name!r} may reach another machine by {word.known!r}")
    yield from _operands(command, Use.WRITE, places)


def _dated(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """`date`, `hostname`: they tell, or set."""
    setting = r"-[a-zA-Z]*s.*|--se.*|\d{8,}[\d.]*" if command.program == "date" else r"[^-].*|-b.*"
    if any(re.fullmatch(setting, word.known) for word in command.words):
        yield ask("system", f"{command.program!r} changes the system", Severity.HIGH)
    yield from _operands(command, Use.READ, places)


def _installed(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """`install`: as `cp`, with a mode."""
    modes = [w.known for w in command.words] + [w.known[2:] for w in command.words]
    if any(SETUID.search(mode.removeprefix("--mode=")) for mode in modes):
        yield ask("privilege", "lets a program run with the rights of its owner", Severity.HIGH)
    yield from _copy(command, places)


def _mirror(command: ShellCommand, places: Places) -> Iterator[Finding]:
    for word in command.words:
        if re.match(r"-[a-zA-Z]*e|--rsh|--rsync-path", word.known):
            yield ask("code", "rsync may run a program", Severity.HIGH)
        elif re.match(r"[\w.@-]+::?", word.known) or "://" in word.known:
            yield ask("network", "rsync talks to the network")
        elif word.known.startswith(("--daemon", "--config")):
            yield ask("network", "rsync serves files to the network")
        elif word.known.startswith(("--del", "--remove-s")):
            yield ask("destructive", "rsync deletes files")
    yield from _copy(command, places)


_WRAPPING = {
    "cd": _change,
    "pushd": _change,
    "for": _listed,
    "xargs": _argument_file,
    "time": _own_file,
    "strace": _own_file,
    "ltrace": _own_file,
    "script": _own_file,
    "flock": _own_file,
}
_RULES = {
    "find": _find,
    "cp": _copy,
    "install": _installed,
    "date": _dated,
    "hostname": _dated,
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
