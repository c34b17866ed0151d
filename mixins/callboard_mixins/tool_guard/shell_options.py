"""Options and words by which programs that work on files run others. Called by `shell_files`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.shell_paths import ask
from callboard_mixins.tool_guard.shell_programs import (
    INTERPRETERS,
    RUNNING_OPTIONS,
    USES,
    WHOLE_OPTIONS,
    Use,
)
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_wrappers import SHELLS, is_stream

_LATEX = r"--?(?:shell-esc|enable-write18|e$|pdflatex=|r$).*|.*\\.*"
_OWN = {  # words by which these programs run another one
    name: re.compile(pattern)
    for names, pattern in (
        ("split", r"--fil.*"),
        ("cmake", r"-E.*|.*(?:LAUNCHER|EMULATOR)[\w:]{0,20}=(?!s?ccache$).*"),
        ("node", r"-r.*|--require.*"),
        ("tar", r"-I.*"),
        ("sort", r"--comp.*"),
        ("go", r"--?(?:exec|toolexec|vettool|overlay|compiler|gccgoflags)\b.*|.*-extld.*"),
        ("cargo rustc", r"-C ?linker.*|linker=.*|--config(?:=.*)?"),
        ("java", r"-XX:(?:On|.*Command).*|-agent(?:lib|path):.*|-javaagent:.*|@.*"),
        ("javac protoc gcc g++ cc c++ clang", r"@.*"),
        ("pdflatex xelatex latexmk", _LATEX),
        ("rake", r"-[eEpr].*"),
        ("just", r"-c|--shell.*"),
        ("ghc", r"-e.*|-pgm.*|-F"),
        ("actionlint", r"--?(?:shellcheck|pyflakes)(?:=.+)?"),
        ("mvn mvnw", r"(?:.*:)?exec.*|release:.*|dependency:get|-D?exec\..*"),
        ("sbt", r".*;.*|.*eval\b.*|publish.*"),
        ("less more", r"\+(?!(?:[FGg]|\d+g?)$).*|-k.*"),
        ("gdb", r"(?!--version$).*"),
        ("npm", r"--git\b.*|-c"),
        ("fd", r"-[a-zA-Z]*[xX].*"),
        ("nim", r"--eval.*|e"),
        ("kotlinc swift ocaml", r"-e"),
        ("rails", r"new"),
        ("ctags", r"--_?(?:map|xcmd|options).*"),
        ("rsync", r"-[a-zA-Z]*[eM].*|--rs.*"),
        ("make gmake", r"-E.*|--ev.*"),
    )
    for name in names.split()
}
_ACTS = frozenset(  # words in front of code, or of a program, to programs that build
    "shell console c runner r dbconsole repl ghci utop fsi eval exec devenv script cmd "
    "plugin".split()
)
_TARGETS = frozenset("make gmake just task ninja npm yarn pnpm bun rake turbo".split())
_INPUTS = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/dev/fd/63"})
_SQLITE_ACTS = re.compile(
    r"readfile|writefile|load_extension|attach|\bedit\s*\(|fsdir|tokenizer"
    r"|zipfile",
    re.IGNORECASE | re.DOTALL,
)
_SQLITE_LOOKS = re.compile(
    r"\.(?:tables?|schema|fullschema|headers?|mode|dump|databases|ind(?:ex|ic)es|show|help|stats"
    r"|timer|echo|nullvalue|separator|width|eqp|explain|quit|exit|version|limit|changes|bail)"
    r"\b[^|]*"
)


def is_one_of(word: str, options: Collection[str]) -> bool:
    """Whether a word is one of these options, also a long one cut short, as GNU programs allow."""
    name = word.split("=", 1)[0]
    if name in options:
        return True
    cut = len(name) > 4 and name.startswith("--") and name not in WHOLE_OPTIONS
    return cut and any(option.startswith(name) for option in options)


def running_findings(command: ShellCommand) -> Iterator[Finding]:
    """Options and words by which a program that works on files runs another one."""
    name = command.program or ""
    if "--version" in command.arguments[:1] or name in ("git", "find"):
        return
    own = _OWN.get(name)
    for at, word in enumerate(command.words):
        before = command.words[at - 1].known if at else ""
        if is_one_of(word.known, RUNNING_OPTIONS) or (own and own.fullmatch(word.known)):
            option = word.known.split("=", 1)[0]
            yield ask("code", f"{name!r} may run a program by {option!r}", Severity.HIGH)
        elif name in ("make", "gmake"):
            from_input = word.known.removeprefix("-f") in _INPUTS
            if from_input and (before == "-f" or word.known.startswith("-f")):
                yield ask("code", "make is given its rules on the input", Severity.HIGH)
        elif name in ("jq", "yq") and re.search(
            r"\b(?:str)?env(?:subst)?\b|\$ENV|load|input_filename", word.known
        ):
            yield ask("secrets", f"{name!r} may show all variables, secrets among them")
        elif USES[name] is Use.BUILD and is_stream(word.known):
            yield ask("code", f"{name!r} is given what the command reads")
        elif USES[name] is Use.BUILD and re.search(
            r"[a-z]://|^\w[\w.-]*/\S+@(?:latest|v\d)|^(?:npm|jsr):", word.known
        ):
            yield ask("network", f"{name!r} may fetch {word.known!r}")
    yield from _acting(command, name)
    if name == "sqlite3":
        yield from _sqlite(command)
    if name == "ps" and any(re.fullmatch(r"[a-z]*e[a-z]*", w.known) for w in command.words[:1]):
        yield ask("secrets", "'ps' shows the variables of other programs")


def _acting(command: ShellCommand, name: str) -> Iterator[Finding]:
    """`flask shell`, `dune exec`: subcommands that run code, or any program."""
    if USES[name] is not Use.BUILD or name in _TARGETS | INTERPRETERS | SHELLS:
        return
    first = next((w.known for w in command.words if not w.known.startswith("-")), "")
    if first in _ACTS and (name, first) != ("bundle", "exec"):
        yield ask("code", f"'{name} {first}' may run any code", Severity.HIGH)


def _sqlite(command: ShellCommand) -> Iterator[Finding]:
    """Only SQL that stays in its file, and the commands that look, are plain to see."""
    words = [word for word in command.words if not re.match(r"-\w+$", word.known)]
    texts = [line.strip() for word in words[1:] for line in (word.value or ".").split("\n")]
    texts += [word.value or "" for word in words]
    acts = any(
        _SQLITE_ACTS.search(text)
        or ("vacuum" in text.lower() and "into" in text.lower())
        or (text[:1] == "." and not _SQLITE_LOOKS.fullmatch(text))
        for text in texts
    )
    options = {word.known.lstrip("-") for word in command.words if word.known.startswith("-")}
    read = len(words) < 2 and (command.upstream or command.redirections)
    if (
        acts
        or read
        or options & {"cmd", "init", "A", "append"}
        or any(o[:1] == "A" for o in options)
    ):
        yield ask("code", "sqlite3 may run a program or touch other files")
