"""What the tests of the guard's detectors share: corpora, a workspace full of traps, verdicts."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from callboard import Tool, ToolCall, tool
from callboard.workspace import Workspace
from callboard_mixins.tool_guard.findings import Detector, Finding
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_parse import parse_shell
from callboard_mixins.tool_guard.shell_rules import shell_findings

CORPUS = Path(__file__).parent / "corpus"
LEVELS = ("allow", "ask", "deny")


@cache
def corpus(name: str) -> tuple[tuple[str, str], ...]:
    """The entries of a file of the corpus, each with the heading that it stands under."""
    found: dict[str, list[str]] = yaml.safe_load((CORPUS / f"{name}.yaml").read_text())
    return tuple((heading, str(entry)) for heading, entries in found.items() for entry in entries)


def plain_workspace(root: Path) -> Workspace:
    """What a developer works in."""
    for folder in ("src", "tests", "scripts", ".git/hooks", "config", "deploy"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("README.md", "Makefile", "src/main.py", "scripts/run.sh"):
        (root / name).touch()
    return Workspace(root)


def trapped_workspace(root: Path) -> Workspace:
    """The same with links that lead out: a folder, one in the middle, dangling, a chain, a loop."""
    workspace = plain_workspace(root)
    (root / "d").mkdir()
    links = {"link": "/etc", "d/mid": "/", "new": "/tmp/there-is-no-such-file", "inner": "src"}
    links |= {"chain": "chain2", "chain2": "../elsewhere", "loop": "loop"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    return workspace


def judge(text: str, places: Places) -> str:
    """The verdict on a shell text: allow, ask or deny."""
    return worst(shell_findings(parse_shell(text), text, places))


def worst(findings: tuple[Finding, ...]) -> str:
    """The verdict that findings come to."""
    advice = {finding.advice for finding in findings}
    return "deny" if "deny" in advice else "ask" if "ask" in advice else "allow"


@tool
def anything(path: str = "") -> str:
    """A tool that may do anything."""
    return path


def look(
    detector: Detector, arguments: dict[str, Any], used: Tool = anything
) -> tuple[Finding, ...]:
    """What a detector finds in a call with these arguments."""
    return detector(ToolCall(id="c", name=used.name, raw=json.dumps(arguments)), used)
