"""Package managers and the like: what brings in foreign code, publishes, or acts elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.shell_paths import ask
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word

_PUBLISH = frozenset(
    "publish upload push deploy release login logout token adduser owner yank unpublish dist-tag "
    "register access team".split()
)
_INSTALL: dict[str, str] = {  # what brings in packages by their names
    "pip": "install download wheel",
    "pip3": "install download wheel",
    "pipx": "install run inject",
    "uv": "add pip tool",
    "poetry": "add self",
    "pdm": "add",
    "rye": "add install",
    "pipenv": "install",
    "conda": "install create env",
    "mamba": "install create env",
    "npm": "install i add exec x create init link",
    "pnpm": "add dlx create exec",
    "yarn": "add dlx create global",
    "bun": "add x create",
    "cargo": "install add",
    "go": "install get",
    "gem": "install",
    "bundle": "add",
    "composer": "require global",
    "dotnet": "add tool",
    "rustup": "install toolchain update self",
    "helm": "install upgrade uninstall delete rollback repo",
}
_LOOKS: dict[str, str] = {  # programs of which only these subcommands are harmless
    "docker": "ps images logs inspect version info stats top port diff history build compose "
    "buildx --version events",
    "docker-compose": "ps logs config build up down images top version --version",
    "podman": "ps images logs inspect version info build",
    "kubectl": "get describe logs version explain top api-resources cluster-info diff kustomize",
    "helm": "lint template list ls version status show dependency package get history",
    "terraform": "fmt validate plan init show version providers graph output -version",
    "tofu": "fmt validate plan init show version providers graph output",
    "gh": "pr issue run repo --version status workflow release label search",
    "conda": "list info env search --version",
    "nvm": "ls list current use --version",
}
_LOOK_VERBS = frozenset("list ls view status diff checks show ps logs config build up down".split())
_TWO_LEVELS = frozenset({"gh"})
_COMPOSE = frozenset("ps logs config build up down images top version restart stop start".split())
_NPX = frozenset(
    "tsc eslint prettier jest vitest mocha webpack vite next tsx ts-node playwright cypress biome "
    "stylelint svelte-check vue-tsc tailwindcss rollup nx turbo husky lint-staged knip".split()
)
_MANAGERS = frozenset(
    "npm yarn pnpm bun cargo twine poetry uv hatch pdm flit gem mvn gradle dotnet docker podman "
    "helm composer vsce conda rye npx mix rebar3 cabal stack opam pub nuget".split()
)


_ELSEWHERE = (  # options that bring packages from elsewhere, or to elsewhere
    "-i",
    "--index-url",
    "--extra-index-url",
    "--registry",
    "--trusted-host",
    "-f",
    "--find-links",
    "--target",
    "--prefix",
    "--root",
    "-g",
    "--global",
    "--git",
)
_LISTED = frozenset("-r --requirement -e --editable -c --constraint --path".split())


def package_findings(command: ShellCommand) -> Iterator[Finding]:
    """What a package manager brings in or sends out, and what acts on other machines."""
    name = command.program or ""
    words = command.words
    if name.startswith("python") and words and words[0].known.startswith("-m"):
        module = words[0].known[2:]
        name, words = (module, words[1:]) if module else (_known(words, 1), words[2:])
    operands = [w.known for w in words if not w.known.startswith(("-", "+"))]
    verb = operands[0] if operands else ""
    if name in _MANAGERS and any(v in _PUBLISH for v in operands[:2]):
        yield ask("publish", f"'{name} {verb}' publishes, or signs in to do so", Severity.HIGH)
    if name == "uvx":
        yield ask("install", f"'uvx' fetches and runs {verb!r}", Severity.HIGH)
    elif verb in _INSTALL.get(name, "").split():
        yield from _install(name, verb, [w.known for w in words])
    if name in _LOOKS:
        yield from _elsewhere(name, operands, [w.known for w in words])
    if name in ("npx", "bunx"):
        local = {"--no", "--no-install"} & {w.known for w in words}
        if not local and verb not in _NPX:
            yield ask("install", f"{name!r} may fetch and run {verb!r}", Severity.HIGH)
    if name in ("make", "gmake"):
        for word in words:
            if (
                re.match(r"--eval|SHELL=|MAKEFLAGS=|\.SHELLFLAGS=", word.known)
                or "$(" in word.known
            ):
                yield ask("code", "make is given a program to run", Severity.HIGH)
    if name == "npm" and verb == "config" and operands[1:2] not in (["get"], ["list"], ["ls"]):
        yield ask("persistence", "changes the settings of npm")


def _known(words: tuple[Word, ...], at: int) -> str:
    return words[at].known if at < len(words) else ""


def _install(name: str, verb: str, known: list[str]) -> Iterator[Finding]:
    """Packages by their names; those of the workspace and of its list of requirements may be."""
    packages = _packages(known[known.index(verb) + 1 :] if verb in known else known)
    if name == "uv" and verb == "pip":
        if packages[:1] == ["install"]:
            yield from _install("pip", "install", known)
        return
    runs = verb in "exec x dlx tool run self env create toolchain repo".split()
    for package in packages[:1] or ([verb] if runs else []):
        yield ask("install", f"'{name} {verb}' brings in {package!r}")


def _packages(words: list[str]) -> list[str]:
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith(_ELSEWHERE):
            found.append(word)
        elif word in _LISTED:
            rest = rest[1:]
        elif not word.startswith("-") and not _local(word):
            found.append(word)
    return [word for word in found if word not in ("pip", "setuptools", "wheel")]


def _local(word: str) -> bool:
    return re.match(r"\.(?:$|/|\[)|[\w./-]+\.(?:whl|tar\.gz|tgz|gem|nupkg)$", word) is not None


def _elsewhere(name: str, operands: list[str], known: list[str]) -> Iterator[Finding]:
    verb = operands[0] if operands else (known[0] if known else "")
    second = operands[1] if len(operands) > 1 else ""
    harmless = verb in _LOOKS[name].split() or verb in ("--help", "help", "--version")
    if harmless and name in _TWO_LEVELS:
        harmless = second in _LOOK_VERBS or not second
    if harmless and verb in ("compose", "buildx"):
        harmless = second in _COMPOSE or second in ("", "ls")
    if harmless and name == "kubectl" and re.match(r"secrets?\b", second):
        harmless = False
    if not harmless:
        yield ask("remote", f"'{name} {verb}' acts outside of the workspace", Severity.MEDIUM)
