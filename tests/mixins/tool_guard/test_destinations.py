"""Where a call would lead over the network: no spelling of an address hides it."""

from __future__ import annotations

from typing import Any

import pytest

from callboard_mixins.tool_guard.detectors import network_detector
from callboard_mixins.tool_guard.network import judge_host, judge_target
from tests.mixins.tool_guard.guard_kit import look, worst

DETECT = network_detector()


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "http:169.254.169.254/x"},
        {"url": "http:/169.254.169.254/x"},
        {"api_url": "169.254.169.254/latest"},
        {"baseUrl": "169.254.169.254"},
        {"base-url": "//169.254.169.254/x"},
        {"host": "169.254.169.254/x"},
        {"proxy": "169.254.169.254:80"},
        {"target": "[fd00:ec2::254]:80"},
        {"anything": "169.254.169.254"},
        {"anything": "0xa9.0376.169.254/latest"},
        {"anything": ["x", "::ffff:169.254.169.254"]},
        {"host": "64:ff9b:1::a9fe:a9fe"},
        {"host": "metadata.tencentyun.com"},
        {"host": "instance-data.ec2.internal"},
    ],
)
def test_what_tells_the_machines_credentials_is_refused(arguments: dict[str, Any]) -> None:
    assert worst(look(DETECT, arguments)) == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "http:localhost"},
        {"website": "127.0.0.1"},
        {"target": "localhost:8080"},
        {"anything": "10.0.0.1:22"},
        {"host": "localhost6"},
        {"host": "localtest.me"},
        {"host": "4294967297"},
        {"host": "256.256.256.256"},
        {"url": "http://example.com/?u=http://169.254.169.254/"},
        {"url": "http://example.com/?u=http%3A%2F%2F10.0.0.1/"},
    ],
)
def test_what_leads_inside_or_nowhere_is_asked_about(arguments: dict[str, Any]) -> None:
    assert worst(look(DETECT, arguments)) == "ask"


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "example.com:8080/x"},
        {"url": "https://example.com/?next=https://example.org/x"},
        {"host": "example.com:443"},
        {"anything": "1.2.3"},
        {"anything": "12:30:45"},
        {"email_address": "amy@office.local"},
        {"anything": "8.8.8.8"},
        {"postal_address": "12 Main Street"},
    ],
)
def test_what_is_public_or_no_address_passes(arguments: dict[str, Any]) -> None:
    assert look(DETECT, arguments) == ()


def test_a_port_and_a_path_hide_no_address() -> None:
    found = judge_target("169.254.169.254:80/latest")
    assert found is not None
    assert found.reach == "metadata"


def test_a_number_too_large_for_an_address_is_odd() -> None:
    found = judge_host("0x17f000001")
    assert found is not None
    assert found.reach == "odd"
