"""Programs that run other programs: what `sudo`, `env`, `xargs`, `bash -c` and the like run.

Called by `shell_parse`. An option that is not listed leaves open where the inner command begins,
so that it counts as unknown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word, dynamic, literal

SHELLS = frozenset("sh bash dash zsh ksh ash mksh fish rbash busybox-sh".split())
MOST_ROOTS = 4  # of one search that are followed; each is judged by itself too
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


@dataclass(frozen=True, slots=True)
class Inner:
    """A command inside a command: its words, or its text; unknown where it has neither."""

    how: str
    words: tuple[Word, ...] | None = None
    text: str | None = None
    fetched: frozenset[str] = frozenset()  # programs whose output is the command


@dataclass(frozen=True, slots=True)
class Options:
    """The options in front of an inner command: those alone, and those with a value."""

    alone: str = ""
    valued: str = ""
    operands: int = 0  # before the command, such as the time of `timeout 5 ls`
    assignments: bool = False


_PREFIXES = {  # programs whose operands are a command
    "sudo": Options(
        "-A -b -E -H -i -k -K -n -P -S -s -B --preserve-env --non-interactive --login --stdin",
        "-u --user -g --group -p --prompt -h --host -T -U -r -t",
        assignments=True,
    ),
    "doas": Options("-n -s -L", "-u -C"),
    "pkexec": Options("--disable-internal-agent", "--user"),
    "env": Options(
        "-i --ignore-environment - -0 --null -v --debug",
        "-u --unset",
        assignments=True,
    ),
    "nohup": Options(),
    "time": Options("-p -v -a", "-f -o --format --output", assignments=True),
    "nice": Options("-1 -5 -10 -15 -19", "-n --adjustment"),
    "ionice": Options("-t", "-c -n --class --classdata"),
    "timeout": Options(
        "-f --foreground --preserve-status -v --verbose -p",
        "-s --signal -k --kill-after",
        operands=1,
    ),
    "stdbuf": Options("-oL -eL -iL -o0 -e0 -i0", "-i -o -e --input --output --error"),
    "setsid": Options("-c -f -w --ctty --fork --wait"),
    "taskset": Options("", "", operands=1),
    "chrt": Options("-b -f -i -o -r", "", operands=1),
    "unbuffer": Options("-p"),
    "command": Options("-p"),
    "builtin": Options(),
    "exec": Options("-c -l", "-a"),
    "coproc": Options(assignments=True),
    "busybox": Options(),
    "toybox": Options(),
    "catchsegv": Options(),
    "dbus-run-session": Options("--"),
    "fakeroot": Options(),
    "proxychains": Options("-q", "-f"),
    "strace": Options("-f -ff -c -q -v -y -tt", "-e -o -s"),
    "ltrace": Options("-f -c", "-e -o -s"),
    "ccache": Options(),
    "valgrind": Options("-q --leak-check=full --error-exitcode=1"),
    "chroot": Options("", "", operands=1),
    "unshare": Options("-r -n -m -p -f -u -U -i"),
    "xvfb-run": Options("-a", "-s -n"),
    "caffeinate": Options("-i -d -s -m", "-t"),
    "poetry run": Options(),
    "uv run": Options(
        "-q --quiet --frozen --locked --no-sync --all-extras --isolated --no-project --dev -v",
        "--extra --group --python -p --package --project",
    ),
    "pipenv run": Options(),
    "hatch run": Options(),
    "pdm run": Options(),
    "rye run": Options(),
    "bundle exec": Options(),
    "direnv exec": Options("", "", operands=1),
}
_XARGS = Options(
    "-0 --null -r --no-run-if-empty -t -p -x --verbose -n1 -P0 -P2 -P4 -P8 -I{} -L1 -I%",
    "-n -P -I -L -d -s -E -a --max-args --max-procs --max-lines --delimiter --arg-file",
)
_LEAST = frozenset({"command", "exec", "env", "time", "nice", "sudo", "doas", "xargs", "coproc"})


def inner_words(name: str, words: Sequence[Word]) -> Inner | None:
    """What a program with an own command behind its options runs; None if it is no such one."""
    options = _XARGS if name == "xargs" else _PREFIXES.get(name)
    if options is None:
        return None
    rest = _behind(options, words)
    if rest is None:
        return Inner(name)
    if rest:
        return Inner(name, words=tuple(rest))
    if name == "xargs":
        return Inner(name, words=(literal("echo"),))
    return None if name in _LEAST else Inner(name)


def _behind(options: Options, words: Sequence[Word]) -> list[Word] | None:
    """The words of the command behind the options; None where it is not clear where it begins."""
    alone, valued = options.alone.split(), options.valued.split()
    rest = list(words)
    while rest:
        value = rest[0].one
        if value is None:
            return rest
        if value == "--":
            rest = rest[1:]
            break
        if (options.assignments and _ASSIGNMENT.match(value)) or value in alone:
            rest = rest[1:]
        elif value in valued:
            rest = rest[2:]
        elif value.startswith("-") and value.split("=", 1)[0] in valued and "=" in value:
            rest = rest[1:]
        elif value.startswith("-"):
            return None
        else:
            break
    while options.assignments and rest and _ASSIGNMENT.match(rest[0].known):
        rest = rest[1:]
    return rest[options.operands :]


def _shell(words: Sequence[Word]) -> list[Inner] | None:
    """`bash -c TEXT`: the text; an empty list for a script file, None for code from the input."""
    for at, word in enumerate(words):
        value = word.one
        if value is None:
            return [] if word.known[:1] not in ("", "-", "+") else [Inner("sh")]
        if re.fullmatch(r"[-+](?=[a-zA-Z]*c)[a-zA-Z]*[oO][a-zA-Z]*", value):
            return [Inner("sh -c")]  # which of the next words is the text depends on the shell
        if re.fullmatch(r"[-+][a-zA-Z]*[oO]|--(?:rc|init-)file", value):
            return _shell(words[at + 2 :])
        if re.fullmatch(r"[-+][a-zA-Z]*c[a-zA-Z]*", value):
            code = next((w for w in words[at + 1 :] if not w.known.startswith(("-", "+"))), None)
            return [_text("sh -c", code)] if code else [Inner("sh -c")]
        if is_stream(value):
            return None
        if value in ("-", "-s", "--") or re.fullmatch(r"-[a-z]*s[a-z]*", value):
            return None if value != "--" or at + 1 == len(words) else []
        if not value.startswith(("-", "+")):
            return []
    return None


def is_stream(path: str) -> bool:
    """Whether a file is what a command reads, such as /dev/stdin or `<(ls)`."""
    return re.fullmatch(r"/dev/(?:stdin|fd/\d+)|/proc/[^/]+/fd/\d+", path) is not None


def _text(how: str, word: Word) -> Inner:
    return Inner(how, text=word.one, fetched=word.runs)


def _find(words: Sequence[Word]) -> list[Inner]:
    """`find ROOTS ... -exec COMMAND {} ;`: what is found is below the roots."""
    found: list[Inner] = []
    roots = list(itertools.takewhile(lambda word: not re.match(r"[-(!]", word.known), words))
    below = [_below(root) for root in roots] or [Word("{}", "./*", "./", pattern=True)]
    for at, word in enumerate(words):
        if word.one in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = list(words[at + 1 :])
            ends = [i for i, w in enumerate(rest) if w.one in (";", "+", "\\;")]
            rest = rest[: ends[0]] if ends else rest
            for place in below[:MOST_ROOTS]:
                inner = [place if w.one == "{}" else _holding(w) for w in rest]
                found.append(Inner(f"find {word.one}", words=tuple(inner)))
    return found


def _below(root: Word) -> Word:
    if root.one is None:
        return replace(root, value=None)
    return Word("{}", f"{root.one.rstrip('/')}/*", f"{root.one.rstrip('/')}/", pattern=True)


def _holding(word: Word) -> Word:
    """A word with `{}` in it is not certain: what is found becomes part of it."""
    return dynamic(word.source) if "{}" in word.source else word


def _trap(words: Sequence[Word]) -> list[Inner]:
    if not words or words[0].one in ("-", "-p", "-l", ""):
        return []
    return [_text("trap", words[0])]


def _alias(words: Sequence[Word]) -> list[Inner]:
    return [
        Inner("alias", text=word.one.split("=", 1)[1] if word.one is not None else None)
        for word in words
        if word.one is None or "=" in word.one
    ]


def _eval(words: Sequence[Word]) -> list[Inner]:
    values = [word.one for word in words]
    text = None if None in values else " ".join(value or "" for value in values)
    return [Inner("eval", text=text, fetched=frozenset[str]().union(*(w.runs for w in words)))]


def _after(how: str, *options: str) -> Callable[[Sequence[Word]], list[Inner]]:
    """A reader of texts that stand behind an option, apart from it or after `=`."""

    def read(words: Sequence[Word]) -> list[Inner]:
        found: list[Inner] = []
        for at, word in enumerate(words):
            if word.one in options:
                found.append(_text(how, words[at + 1]) if at + 1 < len(words) else Inner(how))
            for option in options:
                if word.known.startswith(f"{option}=") and option.startswith("--"):
                    value = word.one
                    found.append(Inner(how, text=value and value.split("=", 1)[1]))
        return found

    return read


def _remote(words: Sequence[Word]) -> list[Inner]:
    """`ssh HOST COMMAND`: the words after the first operand, as one text."""
    operands = [at for at, word in enumerate(words) if not word.known.startswith("-")]
    rest = words[operands[0] + 1 :] if operands else ()
    return _eval([w for w in rest if not w.known.startswith("-")]) if rest else []


def _git(words: Sequence[Word]) -> list[Inner]:
    found = _after("git rebase -x", "--exec", "-x")(words)
    values = [word.one or "" for word in words]
    for value in values:
        if re.match(r"alias\.[\w-]+=!", value):
            found.append(Inner("git alias", text=value.split("=!", 1)[1]))
    if "bisect" in values[:1] and "run" in values[1:2]:
        found.append(Inner("git bisect run", words=tuple(words[2:])))
    if "submodule" in values[:1] and "foreach" in values:
        rest = words[values.index("foreach") + 1 :]
        found += _eval([word for word in rest if not word.known.startswith("-")])
    return found


def _search(words: Sequence[Word]) -> list[Inner]:
    """`fd ... -x COMMAND`: the rest of the words."""
    for at, word in enumerate(words):
        if re.match(r"-(?!-|[xX]$)[a-zA-Z]*[xX]|--exec[-=]?.*=|--exe", word.known) and (
            word.known not in ("--exec", "--exec-batch")
        ):
            return [Inner("fd")]
        if word.one in ("-x", "-X", "--exec", "--exec-batch"):
            return [Inner("fd", words=tuple(_holding(w) for w in words[at + 1 :]))]
    return []


def _script(words: Sequence[Word]) -> list[Inner]:
    """`script -c TEXT FILE`; it runs a shell where no text is plain to see."""
    texts = _after("script -c", "-c", "--command", "-qc", "-qec")(words)
    return texts or [Inner("script")]


def _source(words: Sequence[Word]) -> list[Inner]:
    """`source FILE`, where the file is what something else prints."""
    return [Inner("source")] if words and is_stream(words[0].known) else []


def _callback(words: Sequence[Word]) -> list[Inner]:
    """`mapfile -C COMMAND`: it is run with each line that is read."""
    calls = any(re.match(r"-[a-zA-Z]*C", word.known) for word in words)
    return [Inner("mapfile -C")] if calls else []


def _flock(words: Sequence[Word]) -> list[Inner]:
    texts = _after("flock -c", "-c", "--command")(words)
    rest = _behind(Options("-n -x -e -s -u -o -F", "-w -E", operands=1), words)
    return texts or [Inner("flock", words=tuple(rest) if rest else None)]


def _joined(words: Sequence[Word]) -> list[Inner]:
    """Programs that hand all their operands to a shell, such as `watch` and `parallel`."""
    rest = [word for word in words if not word.known.startswith("-")]
    return [*_eval(rest)] if rest and rest[0].known != ":::" else [Inner("parallel")]


_TEXTS: dict[str, Callable[[Sequence[Word]], list[Inner]]] = {
    "find": _find,
    "trap": _trap,
    "alias": _alias,
    "eval": _eval,
    "ssh": _remote,
    "git": _git,
    "su": _after("su -c", "-c", "--command"),
    "runuser": _after("runuser -c", "-c", "--command"),
    "script": _script,
    "source": _source,
    ".": _source,
    "mapfile": _callback,
    "readarray": _callback,
    "flock": _flock,
    "watch": _joined,
    "parallel": _joined,
    "tar": _after("tar", "--to-command", "--checkpoint-action"),
    "fd": _search,
    "nix-shell": _after("nix-shell", "--run", "--command"),
}


def inner_commands(name: str, words: Sequence[Word]) -> list[Inner]:
    """What a program runs by its words alone; nothing for programs that run no others.

    A shell that reads its commands from the input is left to the caller: `reads_input`.
    """
    if name in SHELLS:
        return _shell(words) or []
    if name in _TEXTS:
        return _TEXTS[name](words)
    if name == "env" and any(w.known.startswith(("-S", "--split-string")) for w in words):
        return _split_string(words)
    both = f"{name} {words[0].one}" if words else name
    own = inner_words(both, words[1:]) if both in _PREFIXES else inner_words(name, words)
    if name == "command" and words and words[0].one in ("-v", "-V"):
        return []
    return [own] if own else []


def _split_string(words: Sequence[Word]) -> list[Inner]:
    text = " ".join(word.one or "" for word in words)
    if any(word.one is None for word in words):
        return [Inner("env -S")]
    return [Inner("env -S", text=re.sub(r"^.*?(-S|--split-string)[ =]?", "", text))]


def reads_input(name: str, words: Sequence[Word]) -> bool:
    """Whether a shell is told to take its commands from the standard input."""
    return name in SHELLS and _shell(words) is None


def lists_paths(command: ShellCommand) -> bool:
    """Whether what a command prints are surely paths below its folder, and nothing else.

    A filter lets through what it is given.
    """
    words = [word.one for word in command.words]
    flags = [word for word in words if word is not None and word.startswith("-")]
    operands = [word for word in words if word is None or not word.startswith("-")]
    name = command.program
    if any(re.match(r"-[a-zA-Z]*[lL]|--files|--name-only", flag) for flag in flags):
        return name in ("grep", "rg", "git")
    if name == "git":
        return words[:1] == ["ls-files"]
    if name in ("find", "fd", "ls", "xargs"):
        return "-printf" not in flags
    fed = command.upstream and all(redirection.writes for redirection in command.redirections)
    if name in ("head", "tail", "uniq"):
        return bool(fed) and all(word is not None and word.isdigit() for word in operands)
    most = {"sort": 0, "grep": 1}.get(name or "", -1)
    return bool(fed) and len(operands) <= most and "-o" not in flags


def more_arguments(command: Inner, *, upstream_inside: bool) -> tuple[Word, ...]:
    """The words of a command that gets further ones from its input (`xargs`) or from a search."""
    if command.how != "xargs":
        return command.words or ()
    words = tuple(_holding(word) for word in command.words or ())
    if upstream_inside:
        return (*words, Word("...", "./*", "./", pattern=True))
    return (*words, dynamic("..."))
