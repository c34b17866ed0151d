"""The detectors that come with the guard: shell commands, paths, network addresses, credentials.

Each is a factory that is given its settings once, and returns a pure function of a call and its
tool. What they read is text: advice for a policy, and no containment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

from callboard.messages import ToolCall
from callboard.tooling.tools import Tool
from callboard.workspace import Workspace
from callboard_mixins.tool_guard.credentials import (
    MOST_CHARACTERS,
    credential_in,
    without_credentials,
)
from callboard_mixins.tool_guard.findings import Detector, Finding, Severity
from callboard_mixins.tool_guard.leaves import Leaf, TooMany, leaves_of
from callboard_mixins.tool_guard.network import (
    URL,
    Destination,
    is_address,
    judge_target,
    judge_url,
)
from callboard_mixins.tool_guard.paths import declared_paths, path_finding
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_parse import parse_shell
from callboard_mixins.tool_guard.shell_rules import shell_findings
from callboard_mixins.tool_guard.shell_texts import (
    COMMAND_PARAMETERS,
    folded,
    is_command,
    shell_texts,
)
from callboard_mixins.tool_guard.shell_tree import require_parser

LOCAL_TOOLS = frozenset("read_file write_file edit_file glob_files grep_files delete_file".split())
_HOST_NAMES = ("host", "hosts", "hostname", "server", "domain", "proxy", "target", "address")
_URL_NAMES = ("url", "urls", "uri", "href", "link", "endpoint", "webhook", "website")
_SCHEME = re.compile(r"(?:https?|wss?|ftp):|[a-z]+:(?!\d)", re.IGNORECASE)  # no `host:80`
_ADVICE: dict[str, tuple[Severity, Literal["deny", "ask"]]] = {
    "metadata": (Severity.CRITICAL, "deny"),
    "own": (Severity.HIGH, "ask"),
    "odd": (Severity.HIGH, "ask"),
    "scheme": (Severity.MEDIUM, "ask"),
}


def shell_detector(
    *,
    workspace: Workspace,
    parameters: Collection[str] = COMMAND_PARAMETERS,
    tools: Collection[str] | None = None,
) -> Detector:
    """What the shell commands in a call would do; categories `shell.*`.

    A command is a text under one of `parameters` at any depth of the arguments, or a list of words
    there (of texts, where the name is a plural). `tools` names the tools that it looks at; None is
    all of them.

    Raises:
        MissingExtra: tree-sitter is not installed (extra `guard`).
    """
    require_parser()
    places = Places(workspace)

    def detect(call: ToolCall, tool: Tool) -> tuple[Finding, ...]:
        if tools is not None and tool.name not in tools:
            return ()
        found: list[Finding] = []
        for where, text in shell_texts(call.arguments, parameters):
            findings = shell_findings(parse_shell(text), text, places)
            found += [_placed(finding, where) for finding in findings]
        return tuple(found)

    return detect


def path_detector(*, workspace: Workspace) -> Detector:
    """Paths anywhere in a call that lead out of the workspace, or to something delicate in it.

    Categories `path.*`. A text is a path by the name or the format of its parameter, or else by
    its shape; texts to read or to write (`content`, `message`, ...) are none.
    """
    places = Places(workspace)

    def detect(call: ToolCall, tool: Tool) -> tuple[Finding, ...]:
        declared = declared_paths(tool)
        found: list[Finding] = []
        for leaf in _leaves(call, found, "path"):
            if is_command(leaf.name):  # commands are the shell detector's
                continue
            finding = path_finding(leaf, tool, places, declared)
            if finding is not None:
                found.append(_placed(finding, leaf.where))
        return tuple(found)

    return detect


def network_detector(*, allowed_hosts: Collection[str] = ()) -> Detector:
    """URLs and hosts that lead into this machine or its network; categories `network.*`.

    Also those whose host is hidden or that use another scheme than http. `allowed_hosts` are
    passed whatever they are, such as "localhost". Names are not looked up.
    """
    allowed = frozenset(host.lower() for host in allowed_hosts)

    def detect(call: ToolCall, _tool: Tool) -> tuple[Finding, ...]:
        found: list[Finding] = []
        for leaf in _leaves(call, found, "network"):
            for shown, destination in _destinations(leaf):
                if destination.host in allowed and destination.reach == "own":
                    continue
                severity, advice = _ADVICE[destination.reach]
                text = f"{shown!r} is not a plain public address: {destination.note}"
                category = f"network.{destination.reach}"
                found.append(_placed(Finding(category, severity, text, "", advice), leaf.where))
        return tuple(found)

    return detect


def secret_detector(*, local_tools: Collection[str] = LOCAL_TOOLS) -> Detector:
    """Credentials among the arguments of a tool that may send them out; category `secrets.sent`.

    `local_tools` keep what they are given on this machine. The finding does not quote the value.
    """
    local = frozenset(local_tools)

    def detect(call: ToolCall, tool: Tool) -> tuple[Finding, ...]:
        if tool.name in local:
            return ()
        found: list[Finding] = []
        for leaf in _leaves(call, found, "secrets"):
            kind = credential_in(leaf.text)
            if kind is not None:
                text = f"{tool.name!r} would be given {kind}"
                found.append(Finding("secrets.sent", Severity.HIGH, text, leaf.where, "ask"))
        return tuple(found)

    return detect


def _placed(finding: Finding, where: str) -> Finding:
    return replace(finding, where=where, text=without_credentials(finding.text))


def _leaves(call: ToolCall, found: list[Finding], category: str) -> list[Leaf]:
    """The texts of a call; a finding instead where they are too many to look at."""
    try:
        leaves = leaves_of(call.arguments)
    except TooMany as error:
        found.append(Finding(f"{category}.unread", Severity.HIGH, str(error), "", "ask"))
        return []
    for leaf in leaves:
        if len(leaf.text) > MOST_CHARACTERS and not (leaf.prose and category != "secrets"):
            text = f"a text has more than {MOST_CHARACTERS} characters, and is not read"
            found.append(Finding(f"{category}.unread", Severity.HIGH, text, leaf.where, "ask"))
    return [leaf for leaf in leaves if len(leaf.text) <= MOST_CHARACTERS]


def _destinations(leaf: Leaf) -> Iterator[tuple[str, Destination]]:
    """What is to be said about the hosts that a text names."""
    text, name = leaf.text.strip(), folded(leaf.name)
    if leaf.prose:
        return
    if not name.endswith(_URL_NAMES):
        hosts = name.endswith(_HOST_NAMES) and " " not in text and "mail" not in name
        if "://" not in text and (hosts or is_address(text)):
            yield from _told(text, judge_target(text))
        for url in URL.findall(text):
            yield from _told(url, judge_url(url) if "://" in url else None)
        return
    if "://" not in text and not _SCHEME.match(text):
        text = f"http://{text.lstrip('/')}"
    yield from _told(text, judge_url(text))


def _told(text: str, found: Destination | None) -> Iterator[tuple[str, Destination]]:
    if found is not None:
        yield text, found
