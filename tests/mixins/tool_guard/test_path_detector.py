"""The path detector: which texts are paths, at what depth, and where they lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callboard import tool
from callboard.workspace import Workspace
from callboard_mixins.tool_guard.detectors import path_detector
from callboard_mixins.tool_guard.places import Kind, Places
from tests.mixins.tool_guard.guard_kit import look, plain_workspace, trapped_workspace, worst


@tool(effect="pure")
def read(path: str) -> str:
    """Read a file."""
    return path


@tool
def load(where: Path) -> str:
    """Load a file, declared to be one by its type."""
    return str(where)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return trapped_workspace(tmp_path)


def test_grd_08_every_leaf_is_visited_and_named(workspace: Workspace) -> None:
    leaves = ["/ETC/Passwd", "．．/．．/etc/passwd", "%2e%2e/etc/passwd", "/e\u200btc/passwd"]
    arguments: dict[str, Any] = {"ops": [{"op": "read", "p": [text]} for text in leaves]}
    arguments["ops"].append({"op": "x", "json": '{"p":"/etc/passwd"}'})
    found = look(path_detector(workspace=workspace), arguments)
    assert {finding.where for finding in found} == {
        *(f"/ops/{at}/p/0" for at in range(4)),
        "/ops/4/json",
    }


@pytest.mark.parametrize("path", ["link/passwd", "d/mid/tmp/evil", "new", "../x"])
def test_grd_05_a_link_that_leads_out_is_found(workspace: Workspace, path: str) -> None:
    assert worst(look(path_detector(workspace=workspace), {"path": path})) != "allow"


def test_grd_05_links_that_stay_inside_pass(workspace: Workspace) -> None:
    assert look(path_detector(workspace=workspace), {"path": "inner/main.py"}) == ()


def test_a_root_that_is_a_link_judges_alike(workspace: Workspace, tmp_path: Path) -> None:
    other = tmp_path.parent / f"{tmp_path.name}-link"
    other.symlink_to(tmp_path)
    detector = path_detector(workspace=Workspace(other))
    assert look(detector, {"path": str(other / "src/main.py")}) == ()
    assert look(detector, {"path": str(tmp_path / "src/main.py")}) == ()
    assert worst(look(detector, {"path": str(other / "link/passwd")})) == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": "link/passwd"},
        {"x": "/etc/passwd"},
        {"x": {"y": [["~/.ssh/id_rsa"]]}},
        {"/etc/passwd": 1, "x": {"/etc/passwd": 1}},
        {"x": '["/etc/passwd"]'},
        {"content": '{"path": "/etc/passwd"}'},
        {"output_file": "/etc/passwd"},
        {"x": "file:///etc/passwd"},
        {"x": "${HOME}/.ssh/id_rsa"},
    ],
)
def test_a_path_is_found_under_any_name(workspace: Workspace, arguments: dict[str, Any]) -> None:
    assert worst(look(path_detector(workspace=workspace), arguments)) == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "/etc/passwd is a file"},
        {"message": "../x"},
        {"pattern": "/foo/"},
        {"url": "https://example.com/../x"},
        {"x": "a b c", "n": 3, "ok": True, "none": None},
        {"x": "1.5", "version": "~1.2"[1:]},
        {"path": ""},
    ],
)
def test_what_is_no_path_passes(workspace: Workspace, arguments: dict[str, Any]) -> None:
    assert look(path_detector(workspace=workspace), arguments) == ()


def test_a_parameter_of_the_type_path_is_one(workspace: Workspace) -> None:
    found = look(path_detector(workspace=workspace), {"where": "src/main.py "}, load)
    assert [finding.category for finding in found] == ["path.odd_path"]


def test_a_tool_that_only_reads_may_read_what_is_public(workspace: Workspace) -> None:
    detector = path_detector(workspace=workspace)
    assert look(detector, {"path": "/usr/include/stdio.h"}, read) == ()
    assert worst(look(detector, {"path": "/usr/include/stdio.h"})) == "ask"
    assert worst(look(detector, {"path": "/etc/shadow"}, read)) == "deny"


def test_what_runs_by_itself_may_be_read_and_not_written(workspace: Workspace) -> None:
    detector = path_detector(workspace=workspace)
    assert look(detector, {"path": ".git/config"}, read) == ()
    assert worst(look(detector, {"path": ".git/config"})) == "ask"


def test_a_pattern_is_judged_by_what_it_matches(workspace: Workspace) -> None:
    places = Places(workspace)
    kinds = {place.kind for place in places.judge_pattern("l*k/shadow")}
    assert Kind.CREDENTIALS in kinds or not Path("/etc/shadow").exists()
    assert {place.kind for place in places.judge_pattern("src/*.py")} == {Kind.INSIDE}
    assert places.judge_pattern("{a,b}" * 9)[0].kind is Kind.ODD


def test_a_workspace_below_a_home_is_not_outside(tmp_path: Path) -> None:
    places = Places(plain_workspace(tmp_path))
    assert places.judge(str(tmp_path)).kind is Kind.ROOT
    assert places.judge(str(tmp_path.parent)).kind is Kind.VITAL
    assert places.judge(str(tmp_path / "src")).kind is Kind.INSIDE
