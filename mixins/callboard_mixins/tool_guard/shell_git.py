"""What is to be said of git commands: most are harmless, some lose work or run programs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_options import is_one_of
from callboard_mixins.tool_guard.shell_paths import ask, word_findings
from callboard_mixins.tool_guard.shell_programs import Use
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word, literal

_PLAIN = frozenset(
    """
    status diff log show add commit branch checkout switch restore stash fetch pull merge rebase
    tag blame annotate ls-files ls-tree rev-parse rev-list describe shortlog grep cat-file config
    remote init mv rm reset cherry-pick revert bisect worktree reflog show-ref symbolic-ref
    merge-base name-rev diff-tree diff-index diff-files apply am format-patch archive check-ignore
    check-attr for-each-ref count-objects fsck gc notes submodule sparse-checkout help version
    var whatchanged range-diff ls-remote maintenance cherry verify-commit verify-tag stripspace
    show-branch check-ref-format hash-object write-tree read-tree update-index mergetool-lib
    clean push lfs
    """.split()
)
_TEXT_OPTIONS = frozenset(
    "-m -am -cm --message --author --date --grep --since --until --after --before --format "
    "--pretty -S -G -L -n -b -B -c -C --trailer --max-count --sort -X -s --onto --track -u "
    "-fm --points-at --contains --merged".split()
)
_SAFE_CONFIG = re.compile(
    r"(?:user\.(?:name|email)|color\.\w+|core\.(?:quotepath|autocrlf|filemode|abbrev|longpaths)"
    r"|init\.defaultbranch|advice\.\w+|(?:commit|tag)\.gpgsign|pull\.(?:rebase|ff)|log\.\w+"
    r"|push\.(?:default|autosetupremote)|merge\.conflictstyle|rebase\.auto\w+|diff\.(?:algorithm"
    r"|renames|color\w*)|core\.pager=cat$|safe\.directory|fetch\.prune)(?:=|$)",
    re.IGNORECASE,
)
_PROGRAMS = frozenset(  # options that run programs, or write or read elsewhere; cut short too
    "--upload-pack --receive-pack --exec --ext-diff --textconv --output --open-files-in-pager "
    "--git-dir --work-tree --template --config-env --super-prefix --no-verify-ssl --filters "
    "--unsafe-paths --remote --stdin-paths --separate-git-dir --strategy --gpg-sign --signed "
    "--edit-description --extcmd --tool".split()
)
_PLAIN_OPTIONS = frozenset("--filter --remotes --output-indicator-new --template= --stdin".split())
_SHORT = {  # those of single letters
    "grep": r"-[a-zA-Z]*O.*",
    "rebase": r"-(?!x$|X)[a-z]+x.*|-x.+",
    "ls-remote": r"-u.+",
    "archive": r"-o",
    "merge": r"-s.*",
}


def git_findings(command: ShellCommand, places: Places) -> Iterator[Finding]:
    """What a git command would lose, send out or run."""
    if command.program != "git":
        return
    words = list(command.words)
    yield from _before(words, command, places)
    if not words:
        return
    name = words[0].one
    if name is None or (name not in _PLAIN and not name.startswith("-")):
        yield ask("unknown_program", f"'git {words[0].source}' is not a command the rules know")
    rest = words[1:]
    yield from _losses(name or "", rest)
    yield from _outward(name or "", rest)
    yield from _elsewhere(name or "", rest)
    yield from _words(name or "", rest, command, places)


def _before(words: list[Word], command: ShellCommand, places: Places) -> Iterator[Finding]:
    """The options before the subcommand, which are taken off the words."""
    while words and words[0].known.startswith("-"):
        word = words.pop(0)
        known = word.known
        if known == "-C" and words:
            yield from word_findings(words.pop(0), Use.READ, command, places)
        elif known == "-c" and words:
            setting = words.pop(0)
            if not _SAFE_CONFIG.match(setting.known):
                yield ask("code", "a setting of git may run a program", Severity.HIGH)
        elif known not in (
            "--no-pager",
            "-P",
            "--version",
            "--help",
            "-p",
            "--bare",
            "--no-optional-locks",
            "--literal-pathspecs",
        ):
            yield ask("code", f"git is given {known!r}, which may change what it runs")


_LOSSES: dict[str, re.Pattern[str]] = {
    "reset": re.compile(r"--h.*|--me.*"),
    "clean": re.compile(r"-[a-zA-Z]*[fxX][a-zA-Z]*|--fo.*"),
    "checkout": re.compile(r"-[a-z]*f[a-z]*|--fo.*|\.|\./|\*|:/"),
    "switch": re.compile(r"-[a-z]*[fC][a-z]*|--fo.*|--disc.*"),
    "restore": re.compile(r"\.|\./|\*|:/"),
    "branch": re.compile(r"-[a-zA-Z]*[DfM][a-zA-Z]*|--for(?!mat|-each).*|--del.*"),
    "tag": re.compile(r"-[a-z]*[df][a-z]*|--for(?!mat).*|--del.*"),
    "stash": re.compile(r"drop|clear"),
    "reflog": re.compile(r"expire|delete"),
    "gc": re.compile(r"--pru.*"),
    "prune": re.compile(r".*"),
    "read-tree": re.compile(r"--res.*|-u"),
    "worktree": re.compile(r"remove|--fo.*"),
    "rm": re.compile(r"\.|\./|\*"),
    "push": re.compile(r"-[a-zA-Z]*[fd][a-zA-Z]*|--fo.*|--del.*|--mi.*|--pru.*|\+.*|:.+"),
    "update-index": re.compile(r"--(?:assume-unchanged|skip-worktree)"),
    "symbolic-ref": re.compile(r"-d|--delete"),
    "notes": re.compile(r"remove|prune"),
}


def _losses(name: str, rest: list[Word]) -> Iterator[Finding]:
    """What cannot be had back from git afterwards."""
    pattern = _LOSSES.get(name)
    if pattern is None or (name == "rm" and any(w.known == "--cached" for w in rest)):
        return
    dry = any(w.known in ("-n", "--dry-run") or re.fullmatch(r"-n[a-z]*", w.known) for w in rest)
    if not (name == "clean" and dry) and any(pattern.fullmatch(w.known) for w in rest):
        yield ask("history", f"'git {name}' loses work or history", Severity.HIGH)


def _outward(name: str, rest: list[Word]) -> Iterator[Finding]:
    known = [word.known for word in rest]
    if name == "push" and not {"--dry-run", "-n"} & set(known):
        yield ask("publish", "'git push' sends commits to others")
    if name == "remote" and known[:1] and known[0] in ("add", "set-url", "remove", "rm", "rename"):
        yield ask("network", "changes where git sends and fetches")
    if name == "submodule" and known[:1] and known[0] in ("add", "update", "foreach"):
        yield ask("network", "'git submodule' fetches from elsewhere or runs commands")
    if name == "config":
        reads = {"--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list"}
        keys = [word for word in rest if not word.known.startswith("-")]
        if not reads & set(known) and len(keys) > 1 and not _SAFE_CONFIG.match(keys[0].known):
            yield ask("persistence", "a setting of git may run a program later")
        if {"--global", "--system"} & set(known) and not reads & set(known):
            yield ask("persistence", "changes the settings of git for all workspaces")
        if {"-f", "--file", "-e", "--edit"} & set(known):
            yield ask("persistence", "changes a file of settings")


def _elsewhere(name: str, rest: list[Word]) -> Iterator[Finding]:
    """Other machines that a command reaches, and what it has run later."""
    known = [word.known for word in rest]
    if name in ("fetch", "pull", "ls-remote", "archive", "remote"):
        operands = [k for k in known if not k.startswith("-")]
        if any("::" in k for k in known):
            yield ask("code", "git may run a program to fetch", Severity.HIGH)
        elif any(re.match(r"[\w.@-]+:", k) for k in operands[:1]):
            yield ask("network", f"'git {name}' reaches {operands[0]!r}")
    if name == "lfs" and not {"ls-files", "status", "version", "env"} & set(known[:1]):
        yield ask("publish", "'git lfs' changes settings or sends files out")
    if name == "maintenance" and not {"run"} & set(known[:1]):
        yield ask("persistence", "'git maintenance' has something run later")


def _words(name: str, rest: list[Word], command: ShellCommand, places: Places) -> Iterator[Finding]:
    """The other words: options that run programs, and paths that lead outside."""
    at = 0
    while at < len(rest):
        word = rest[at]
        at += 1
        if word.known in _TEXT_OPTIONS and at < len(rest) and not _quits(word.known, name):
            at += 1
        elif _runs(word.known, name):
            yield ask("code", f"git may run a program or write a file by {word.known!r}")
        elif word.value is None:
            if not word.source.startswith('"') or word.known[:1] in ("", "-", "/", "~", "."):
                yield ask("dynamic", f"what 'git {name}' does depends on {word.source!r}")
        elif not word.pattern:
            short = re.match(r"-[FtC](?=.)", word.known)
            path = literal(word.value[short.end() :]) if short else word
            yield from word_findings(path, Use.BUILD, command, places)


def _runs(word: str, name: str) -> bool:
    if word.split("=", 1)[0] in _PLAIN_OPTIONS:
        return False
    return is_one_of(word, _PROGRAMS) or re.fullmatch(_SHORT.get(name, "(?!)"), word) is not None


def _quits(option: str, name: str) -> bool:
    """Options that take no value with this subcommand."""
    return (option in ("-c", "-C", "-s", "-n", "-u", "-S") and name not in ("log", "grep")) or (
        option == "-b" and name == "branch"
    )
