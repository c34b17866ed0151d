"""Network, credential and shell detectors: where they look, and what they make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard_mixins.tool_guard.credentials import without_credentials
from callboard_mixins.tool_guard.detectors import (
    network_detector,
    path_detector,
    secret_detector,
    shell_detector,
)
from callboard_mixins.tool_guard.findings import Severity
from callboard_mixins.tool_guard.leaves import leaves_of
from tests.mixins.tool_guard.guard_kit import look, plain_workspace, worst

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254.:80/",
        "http://user@169.254.169.254/",
        "gopher://169.254.169.254/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://metadata.google.internal/",
        "http://METADATA.google.internal./",
        "http://１６９.254.169.254/",
        "http://100.100.100.200/",
    ],
)
def test_a_url_to_the_credentials_of_the_machine_is_refused(url: str) -> None:
    assert worst(look(network_detector(), {"url": url})) == "deny"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://LOCALHOST:8000/",
        "http://a.localhost/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.8/",
        "http://192.168.1.1/",
        "http://172.16.0.1/",
        "http://127.0.0.1.nip.io/",
        "http://db.internal/",
        "http://printer.local/",
        "http://134744072/",
        "https://good.example@evil.example/",
        "https://evil.example\\@good.example/",
        "https://good.example /",
        "https://ｇood.example/",
        "https://g%6fod.example/",
        "file:///etc/passwd",
        "gopher://evil.example/",
        "dict://evil.example/",
        "http://",
        "http://[::1",
    ],
)
def test_a_url_that_is_not_plain_and_public_is_asked_about(url: str) -> None:
    assert worst(look(network_detector(), {"url": url})) == "ask"


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "https://example.com/a?b=c#d"},
        {"url": "http://93.184.216.34/"},
        {"url": "https://[2606:2800:220:1:248:1893:25c8:1946]/"},
        {"url": "example.com/a"},
        {"host": "example.com:443"},
        {"content": "see http://localhost:8000/"},
        {"note": "x", "number": 7},
        {"text": "a://b"},
    ],
)
def test_plain_public_addresses_and_prose_pass(arguments: dict[str, Any]) -> None:
    assert look(network_detector(), arguments) == ()


@pytest.mark.parametrize(
    "arguments",
    [
        {"requests": [{"to": {"target": "http://127.0.0.1/"}}]},
        {"body_json": '{"url": "http://127.0.0.1/"}'},
        {"command": "curl -s http://127.0.0.1/"},
        {"host": "127.0.0.1"},
        {"endpoint": "localhost:8000/x"},
    ],
)
def test_a_host_is_found_at_any_depth(arguments: dict[str, Any]) -> None:
    (found, *_) = look(network_detector(), arguments)
    assert found.category == "network.own"


def test_an_allowed_host_passes_and_a_hidden_one_does_not() -> None:
    detector = network_detector(allowed_hosts=["localhost"])
    assert look(detector, {"url": "http://localhost:8000/"}) == ()
    assert worst(look(detector, {"url": "http://x@localhost/"})) == "ask"


@pytest.mark.parametrize(
    "value",
    [
        TOKEN,
        "AKIA" + "Q" * 16,
        "-----BEGIN RSA PRIVATE KEY-----",
        "sk-proj-" + "x1" * 15,
        "https://me:hunter22@example.com/x",
        "Authorization: Bearer " + "ab12" * 8,
        'api_key = "Zx81kd02lsmq"',
    ],
)
def test_a_credential_is_found_and_not_repeated(value: str) -> None:
    (found, *_) = look(secret_detector(), {"payload": [{"note": value}]})
    assert (found.category, found.where) == ("secrets.sent", "/payload/0/note")
    assert value not in found.text


@pytest.mark.parametrize(
    "value", ["hello", "api_key = os.environ['KEY']", "password: $PASSWORD", "sk-learn", "a" * 64]
)
def test_ordinary_text_is_no_credential(value: str) -> None:
    assert look(secret_detector(), {"payload": value}) == ()


def test_what_stays_on_this_machine_may_hold_a_credential() -> None:
    assert look(secret_detector(local_tools=["anything"]), {"payload": TOKEN}) == ()


def test_no_finding_of_the_shell_quotes_a_credential(tmp_path: Path) -> None:
    detector = shell_detector(workspace=plain_workspace(tmp_path))
    found = look(detector, {"command": f'cat "/tmp/{TOKEN}$x"; $y {TOKEN}'})
    assert found
    assert not any(TOKEN in finding.text for finding in found)
    assert without_credentials(f"a {TOKEN} b") == "a *** b"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"command": "rm -rf /"}, "/command"),
        ({"command": ["rm", "-rf", "/"]}, "/command"),
        ({"argv": ["bash", "-c", "rm -rf /"]}, "/argv"),
        ({"commands": ["ls", "rm -rf /"]}, "/commands/1"),
        ({"steps": [{"run": {"cmd": "rm -rf /"}}]}, "/steps/0/run/cmd"),
    ],
)
def test_a_command_is_found_at_any_depth(
    arguments: dict[str, Any], where: str, tmp_path: Path
) -> None:
    (found,) = look(shell_detector(workspace=plain_workspace(tmp_path)), arguments)
    assert (found.where, found.advice, found.severity) == (where, "deny", Severity.CRITICAL)


def test_the_shell_detector_looks_at_the_named_tools_only(tmp_path: Path) -> None:
    detector = shell_detector(workspace=plain_workspace(tmp_path), tools=["run_command"])
    assert look(detector, {"command": "rm -rf /"}) == ()


def test_too_many_texts_are_asked_about(tmp_path: Path) -> None:
    arguments = {"items": ["x"] * 10_001}
    for detector in (
        network_detector(),
        secret_detector(),
        path_detector(workspace=plain_workspace(tmp_path)),
    ):
        assert worst(look(detector, arguments)) == "ask"


def test_a_text_too_long_to_read_is_asked_about() -> None:
    arguments = {"payload": "x" * 200_001}
    assert [f.category for f in look(secret_detector(), arguments)] == ["secrets.unread"]
    assert [f.category for f in look(network_detector(), arguments)] == ["network.unread"]


def test_a_pointer_escapes_what_a_key_holds() -> None:
    (leaf, *_) = leaves_of({"a/b~c": "x"})
    assert leaf.where == "/a~1b~0c"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYS = st.sampled_from(["path", "url", "host", "command", "commands", "content", "x", "p"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arguments")


@settings(max_examples=150, deadline=None)
@given(arguments=st.dictionaries(KEYS, JSON, max_size=4))
def test_no_argument_makes_a_detector_raise(folder: Path, arguments: dict[str, Any]) -> None:
    workspace = plain_workspace(folder)
    for detector in (
        shell_detector(workspace=workspace),
        path_detector(workspace=workspace),
        network_detector(),
        secret_detector(),
    ):
        assert worst(look(detector, arguments)) in ("allow", "ask", "deny")
