"""What a command sets for the programs that it starts, and what it shows of that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_paths import ask, word_findings
from callboard_mixins.tool_guard.shell_programs import (
    DANGEROUS_PREFIXES,
    DANGEROUS_VARIABLES,
    FETCHERS,
    USES,
    Use,
)
from callboard_mixins.tool_guard.shell_script import Script, ShellCommand
from callboard_mixins.tool_guard.shell_words import Word, literal

_SETTERS = frozenset(
    "env sudo doas time coproc export declare typeset local readonly read unset".split()
)
_EXPORTERS = frozenset("env sudo doas export declare typeset".split())
# Names by which programs take a command, their settings or their plug-ins from outside.
_TELLING = re.compile(
    r"(?:^|_)(?:PAGER|EDITOR|COMMAND|CMD|SHELL|WRAPPER|RUNNER|LINKER|LAUNCHER|ASKPASS|PRELOAD|PLUGINS?"
    r"|RCFILE|STARTUP|CONFIG_(?:PATH|FILE|HOME|DIR)|CONFIG|PROXY|MAKEFILES|RUSTC)$"
    r"|^(?:GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT$|MERGE_AUTOEDIT$|OPTIONAL_LOCKS$|PS1_)"
    r"|LESS|MORE$|BAT_|RIPGREP_|FZF_|NPM_CONFIG_|PIP_|UV_|CARGO_(?:BUILD|TARGET|ALIAS)_.*"
    r"|TAPE$|RSYNC_|ZIPOPT$|VIMINIT$|EXINIT$|GCONV_PATH$|OPENSSL_CONF$|SSLKEYLOGFILE$"
    r"|NODE_(?:EXTRA|TLS)|TF_CLI|MAVEN_|GRADLE_OPTS$|YARN_|BUNDLE_|XDG_|TMOUT$|INPUTRC$)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:PAGER|GIT_PAGER)=(?:cat|less)?|(?:GIT_)?(?:EDITOR|SEQUENCE_EDITOR)=(?:true|:|cat)"
    r"|NODE_OPTIONS=(?:--max-old-space-size=\d+|--enable-source-maps| )*|YARN_\w+=[01]"
    r"|GIT_TRACE=[01]"
    r"|(?:PIP|UV|NPM_CONFIG)_(?:NO_|DISABLE_|QUIET|YES|LOGLEVEL|FUND|AUDIT|SYSTEM_PYTHON)\w*=\w*",
    re.IGNORECASE,
)
_EXPORTS_ALL = re.compile(r"-[a-zA-Z]*a|allexport")
_FOLDERS = frozenset("TMPDIR TMP TEMP HOME".split())
_SIGNS = re.compile(r"[;|&`<>\n]|\$\(")


def exported_later(script: Script) -> frozenset[str]:
    """The variables that a text exports apart from setting them."""
    return frozenset(
        word.known
        for command in script.commands
        if command.program in ("export", "declare", "typeset")
        for word in command.words
        if "=" not in word.known
    )


def environment_findings(
    command: ShellCommand, places: Places, exported: frozenset[str]
) -> Iterator[Finding]:
    """Variables that change what programs do, or that would be shown with their secrets."""
    yield from _names(command)
    for name, word in _told(command):
        if command.program != "" or name in exported:
            yield from _value(name, word, command, places)
    if command.program == "set" and any(_EXPORTS_ALL.match(w.known) for w in command.words):
        yield ask("environment", "exports all variables that follow")
    declares = command.program in ("declare", "typeset", "local")
    if declares and any(re.match(r"-[a-zA-Z]*n", word.known) for word in command.words):
        yield ask("environment", "gives a variable a second name", Severity.HIGH)
    if command.program in ("env", "printenv", "set", "export", "declare", "typeset"):
        shown = [w for w in command.words if w.one not in ("-p", "-x", "-0")]
        inside = command.via and command.via[-1] in ("env", "printenv")
        if not shown and not inside:
            yield ask("secrets", f"{command.program!r} shows all variables, secrets among them")


def _names(command: ShellCommand) -> Iterator[Finding]:
    pairs = [(name.rstrip("+"), word) for name, word in command.assignments]
    if command.program in _SETTERS:
        pairs += [_pair(word) for word in command.words]
    for name, word in pairs:
        name = name.split("[", 1)[0]
        if name == "IFS" and command.program in ("read", "unset"):
            continue
        if _HARMLESS.fullmatch(f"{name}={word.one}"):
            continue
        told = command.program not in ("", "read", "unset") and _TELLING.search(name)
        if told or name in DANGEROUS_VARIABLES or name.startswith(DANGEROUS_PREFIXES):
            yield ask("environment", f"sets {name}, which changes what programs do", Severity.HIGH)


def _pair(word: Word) -> tuple[str, Word]:
    name, _, value = word.known.partition("=")
    return name, literal(value) if word.value is not None else Word(word.source, None, value)


def _told(command: ShellCommand) -> Iterator[tuple[str, Word]]:
    """What the programs that follow are told: assignments before a command, and exports."""
    yield from command.assignments
    if command.program in _EXPORTERS:
        yield from (_pair(word) for word in command.words if re.match(r"\w+\+?=", word.known))


def _value(name: str, word: Word, command: ShellCommand, places: Places) -> Iterator[Finding]:
    """A value that a program may take for a command, or for a file outside."""
    value = word.one
    if value is None or _HARMLESS.fullmatch(f"{name}={value}"):
        return
    first, *rest = value.split() or [""]
    known = first.rsplit("/", 1)[-1]
    if rest and (known in FETCHERS or USES.get(known, Use.NONE) is not Use.NONE):
        yield ask("environment", f"sets {name} to what may be run as a command")
    elif _SIGNS.search(value) and not value.startswith(("http://", "https://")):
        yield ask("environment", f"sets {name} to what a shell would take apart")
    elif value.startswith(("/", "~", "../")) and name not in _FOLDERS:
        for part in value.split(":"):
            yield from word_findings(literal(part), Use.READ, command, places)
