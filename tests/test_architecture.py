"""The house as a law: who may import whom, where imports stand, and how long a file gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOORS = {  # each package stands in one source root and may import those before it, but no
    "callboard": "framework",  # mixin a provider, nor the other way round
    "callboard_mixins": "mixins",
    "callboard_providers": "providers",
    "callboard_console": "console",
}
# A module of the framework may import only what stands before it; "testing" is all of testing/.
ORDER = """
    tooling journaling errors loops json_text plain raw_arguments messages per_message
    journaling.blobs journaling.keeping tooling.argument_repair tooling.results tooling.raw_schema
    tooling.functions tooling.signatures tooling.tool_context tooling.arguments tooling.tools
    tooling.toolbox tooling.deadlines tooling.threads tooling.execution tooling.outputs
    tooling.warden tooling.processes tooling.function_child tooling.process_functions replacing
    workspace model assembler actors.address approvals approving replies events watching watchers
    journaling.records journaling.record_codec journaling.journal journaling.sqlite_file
    journaling.following journaling.sqlite_journal queues prices budget journaling.message_view
    journaling.transcript journaling.pairing journaling.conversation journal_events chain lease
    hooks resolving in_place decide deciding call_events batches closing journaling.forking
    performing joins tool_run in_place_run summary reasoning entering requests actors.engine
    actors.shards actors.memory_worker actors.memory_engine actors.waiting actors.envelope
    actors.actor actors.conversing approval_lane nested composition agent_state turnstile
    agent_calls driving runs agent_tool taking_over seated agent questions actors.mailbox
    actors.dead_letters actors.results actors.supervision actors.rules actors.traffic actors.pump
    actors.roster actors.control actors.bus actors.payloads actors.engines actors.engine_journal
    actors.slots actors.suspects actors.kept actors.control_lane actors.post actors.durable_bus
    actors.actor_tool actors.ref actors.system teams handing_over actors testing
""".split()
# What may be imported inside a function: lazy public names, optional extras, costly libraries.
LAZY = {
    "callboard.tooling.raw_schema": {
        "jsonschema",
        "jsonschema_specifications",
        "referencing.exceptions",
    },
    "callboard.tooling.signatures": {"docstring_parser"},
    "callboard.prices": {"genai_prices"},
    "callboard.watchers": {"structlog"},
    "callboard.tooling.tools": {"callboard.tooling.signatures"},
    "callboard.testing.virtual_time": {"trio", "trio.testing"},
    "callboard_console.audit_commands": {"callboard_mixins.audit.keys"},
    "callboard_mixins.media.soundness": {"callboard_mixins.media.scaling"},
    "callboard_mixins.retry_policy": {"tenacity"},
    "callboard_mixins.tool_guard.rules": {"yaml"},
    "callboard_mixins.tool_guard.shell_tree": {"tree_sitter", "tree_sitter_bash"},
    "callboard_console.chat": {"callboard_console.terminal"},
    "callboard_console.doctor": {"openai"},
    "callboard_console.engine_commands": {"callboard_providers.engines.nats_access"},
    "callboard_console.worker_commands": {"callboard_console.metrics"},
    "callboard_console.main": {"callboard_console.commands"},
}
SOURCES = {
    package: sorted((ROOT / root / package).rglob("*.py")) for package, root in FLOORS.items()
}
ALL = [path for paths in SOURCES.values() for path in paths]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def module(path: Path) -> str:
    """The dotted name under which a source file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that are imported anywhere below a node."""
    for found in ast.walk(node):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            yield found.module or "."


def place(name: str) -> int | None:
    """Where a module of the framework stands in ORDER: by itself or with its package.

    The package `callboard` loads everything lazily, so it stands above all.
    """
    if name == "callboard":
        return len(ORDER)
    dotted = name.removeprefix("callboard.")
    entry = dotted if dotted in ORDER else dotted.split(".")[0]
    return ORDER.index(entry) if name != dotted and entry in ORDER else None


def test_packages_import_only_the_floors_below() -> None:
    allowed = {package: {"callboard", package} for package in FLOORS}
    allowed["callboard_console"] = set(FLOORS)
    wrong = [
        f"{module(path)} imports {name}"
        for package, paths in SOURCES.items()
        for path in paths
        for name in imported(tree(path))
        if (floor := name.split(".")[0]) in FLOORS and floor not in allowed[package]
    ]
    assert wrong == []


def test_every_module_of_the_framework_has_its_place_in_the_order() -> None:
    assert [module(path) for path in SOURCES["callboard"] if place(module(path)) is None] == []


def test_modules_of_the_framework_import_only_downward() -> None:
    wrong: list[str] = []
    for path in SOURCES["callboard"]:
        own = place(module(path)) or 0
        used = [(name, place(name)) for name in imported(tree(path))]
        wrong += [f"{module(path)} imports {name}" for name, at in used if at and at > own]
    assert wrong == []


def test_no_import_hides_in_a_function() -> None:
    wrong = [
        f"{module(path)} imports {name}"
        for path in ALL
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in imported(node)
        if name not in LAZY.get(module(path), set())
    ]
    assert wrong == []


def test_no_cycle_hides_behind_type_checking() -> None:
    """Only a package that loads its public names lazily says so to type checkers."""
    wrong = [
        module(path)
        for path in ALL
        if any(isinstance(n, ast.Name) and n.id == "TYPE_CHECKING" for n in ast.walk(tree(path)))
        and "def __getattr__(" not in path.read_text()
    ]
    assert wrong == []


def test_no_file_is_longer_than_400_lines() -> None:
    files = [*ALL, *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert [path.name for path in files if len(path.read_text().splitlines()) > 400] == []


def test_every_package_tells_type_checkers_that_it_is_typed() -> None:
    missing = [
        name for name, root in FLOORS.items() if not (ROOT / root / name / "py.typed").exists()
    ]
    assert missing == []
