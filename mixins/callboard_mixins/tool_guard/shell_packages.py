"""Package managers and the like: what brings in foreign code, publishes, or acts elsewhere."""

from __future__ import annotations

import itertools
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
    "pipx": "install run inject",
    "uv": "add pip tool",
    "poetry": "add self",
    "pdm": "add",
    "rye": "add install",
    "pipenv": "install",
    "conda": "install create env",
    "mamba": "install create env",
    "npm": "install i add exec x create init link",
    "pnpm": "add dlx create exec install i update up",
    "yarn": "add dlx create global up upgrade plugin set exec node",
    "bun": "add x create install i",
    "cargo": "install add",
    "go": "install get",
    "gem": "install i",
    "bundle": "add",
    "composer": "require global exec create-project",
    "dotnet": "add tool",
    "rustup": "install toolchain update self",
    "helm": "install upgrade uninstall delete rollback repo",
}
_BUILDS: dict[str, str] = {  # package managers of which only these subcommands are known to build
    "npm": "run run-script test t tst start stop restart ci install i clean-install ls list ll la "
    "audit outdated view info show v pack prune dedupe ddp rebuild uninstall remove rm un unlink "
    "update up upgrade fund explain why query sbom root prefix bin help version config get "
    "publish login logout exec x init create add link owner dist-tag token unpublish access team",
    "cargo": "build b check c test t bench run r doc d clean clippy fmt fix update tree metadata "
    "fetch nextest add remove vendor search locate-project generate-lockfile verify-project rustc "
    "rustdoc report package publish install login logout owner yank expand llvm-cov machete deny "
    "audit version help udeps",
    "go": "build test run vet fmt mod list doc version get install clean work generate fix help "
    "env tool bug",
    "gem": "list build info search outdated which contents environment dependency check help "
    "install push yank owner uninstall spec",
    "rustup": "show which doc target component check toolchain update self install default "
    "override run",
    "pip": "install list show freeze check uninstall download wheel hash inspect index cache debug "
    "config help",
    "uv": "sync lock run tree pip add remove tool venv build export version cache python init help "
    "publish self format",
    "deno": "run test fmt lint check task bench doc info cache vendor coverage serve types",
    "bun": "run test install i build add remove rm x create pm outdated update link",
    "composer": "install update test show validate dump-autoload outdated require remove run "
    "run-script audit check-platform-reqs licenses depends why status diagnose lint cs phpstan",
    "pyenv": "versions version which local prefix root whence",
    "mix": "test compile format deps.get deps.compile deps deps.tree credo dialyzer phx.server "
    "phx.routes ecto.migrate ecto.create ecto.gen.migration clean help hex.outdated xref",
    "stack": "build test bench clean setup list-dependencies ls path",
    "cabal": "build test bench run clean update list check sdist configure haddock freeze outdated",
}
_MORE_ASKED: dict[str, re.Pattern[str]] = {  # and what asks all the same
    "go": re.compile(r"env .*-[wu]\b|tool |clean .*-modcache|bug"),
    "rustup": re.compile(r"(?:default|override|run|self|toolchain (?:link|uninstall)) ?.*"),
    "npm": re.compile(r"(?:version|config|get|pack) .*://|pkg .*|version (?:major|minor|patch).*"),
    "pip": re.compile(r"config (?:set|edit|unset).*|cache (?:purge|remove).*|.*--proxy.*"),
    "uv": re.compile(r"(?:tool|python|self|cache (?:clean|prune)) ?.*"),
    "bun": re.compile(r"pm (?:trust|cache).*|(?:add|x|create) .*"),
    "pyenv": re.compile(r"local .+"),
    "yarn": re.compile(r"node |config set|set |run (?:node|exec)"),
    "pnpm": re.compile(r"config set|setup|self-update|env "),
    "poetry": re.compile(r"config |env remove|cache clear|source "),
    "nx": re.compile(r"exec "),
    "buf": re.compile(r"push"),
    "mamba": re.compile(r"run|update|remove|clean"),
    "husky": re.compile(r"add|install"),
}
_PUBLISHES = re.compile(
    r"(?:.*:)?(?:publish\w*|upload\w*|deploy|release\w*|hex\.publish|gh-deploy)"
)
_BUILDERS = frozenset("gradle gradlew mvn mvnw sbt lerna mix mkdocs swift".split())
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
    module = _module(words) if name.startswith(("python", "pypy")) else None
    name, words = module or (re.sub(r"^pip3?[\d.]*$", "pip", name), words)
    spaces = name in ("kubectl", "helm")  # the next word of `-n` is a name space
    operands = [
        word.known
        for before, word in itertools.pairwise((None, *words))
        if word is not None
        and not word.known.startswith(("-", "+"))
        and not (spaces and before is not None and before.known in ("-n", "--namespace"))
    ]
    verb = operands[0] if operands else ""
    if name in _MANAGERS and any(v in _PUBLISH for v in operands[:2]):
        yield ask("publish", f"'{name} {verb}' publishes, or signs in to do so", Severity.HIGH)
    if name == "uvx":
        yield ask("install", f"'uvx' fetches and runs {verb!r}", Severity.HIGH)
    elif verb in _INSTALL.get(name, "").split():
        yield from _install(name, verb, [w.known for w in words])
    yield from _builds(name, verb, operands, [w.known for w in words])
    if name in _LOOKS:
        yield from _elsewhere(name, operands, [w.known for w in words])
    if name in ("npx", "bunx"):
        local = {"--no", "--no-install"} & {w.known for w in words}
        if not local and verb not in _NPX:
            yield ask("install", f"{name!r} may fetch and run {verb!r}", Severity.HIGH)
    if name in ("make", "gmake"):
        for word in words:
            told = not word.known.startswith("-") and (
                re.search(r"[$`;|&<>]", word.known) or ("=" in word.known and " " in word.known)
            )
            if told or re.match(r"SHELL=|MAKEFLAGS=|\.SHELLFLAGS=", word.known):
                yield ask("code", "make is given a program to run", Severity.HIGH)
    if name == "npm" and verb == "config" and operands[1:2] not in (["get"], ["list"], ["ls"]):
        yield ask("persistence", "changes the settings of npm")


def _builds(name: str, verb: str, operands: list[str], known: list[str]) -> Iterator[Finding]:
    """Subcommands that are not known to build, cut short ones and plug-ins among them."""
    told = [word for word in known if word.startswith("+")]
    asked = _MORE_ASKED.get(name)
    if verb and name in _BUILDS and verb not in _BUILDS[name].split():
        yield ask("unknown_program", f"'{name} {verb}' is not a command that the rules know")
    elif asked is not None and asked.match(" ".join([*operands[:1], *_behind(known, verb)])):
        yield ask("persistence", f"'{name} {verb}' changes more than the workspace")
    elif told and name in ("cargo", "rustc"):
        yield ask("install", f"{name!r} may fetch the toolchain {told[0]!r}")
    if name in _BUILDERS and any(_PUBLISHES.fullmatch(word) for word in operands):
        yield ask("publish", f"{name!r} sends the work out", Severity.HIGH)


def _behind(known: list[str], verb: str) -> list[str]:
    return known[known.index(verb) + 1 :] if verb in known else []


def _module(words: tuple[Word, ...]) -> tuple[str, tuple[Word, ...]] | None:
    """The module that Python is told to run, and its words: `-m pip`, `-Im pip`, `-W x -m pip`."""
    for at, word in enumerate(words):
        found = re.fullmatch(r"-(?!-)[a-zA-VY-Z]*?m(.*)", word.known)
        if found and found[1]:
            return found[1], words[at + 1 :]
        if found:
            return (words[at + 1].known, words[at + 2 :]) if at + 1 < len(words) else None
        if not word.known.startswith("-") and words[at - 1].known[-1:] not in ("W", "X"):
            return None
    return None


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
    text = " ".join(known).lower()
    if name == "kubectl" and re.search(r"secret|dump|--raw|--enable|--as[= ]|--token", text):
        harmless = False
    if re.search(r"--push|--network|--privileged|--volumes?\b|\bdown .*-v\b|--context=", text):
        harmless = harmless and name not in ("docker", "docker-compose", "podman")
    if not harmless:
        yield ask("remote", f"'{name} {verb}' acts outside of the workspace", Severity.MEDIUM)
