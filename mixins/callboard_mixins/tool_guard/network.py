"""Which hosts and URLs lead into the machine or its network instead of out. Called by detectors.

Names are not looked up: what a public name resolves to is for the client, at connection time.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}:/{0,3}[^\s\"'<>|;]+", re.IGNORECASE)
_SCHEMES = frozenset({"http", "https", "ws", "wss"})
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254 169.254.170.2 169.254.169.253 100.100.100.200 192.0.0.192 168.63.129.16 "
        "fd00:ec2::254 fd00:ec2::23 fd20:ce::254"
    ).split()
)
_METADATA_NAMES = frozenset(
    "metadata.google.internal metadata.goog metadata instance-data instance-data.ec2.internal "
    "metadata.tencentyun.com metadata.platformequinix.com rancher-metadata".split()
)
_INSIDE = (".metadata.google.internal", ".metadata.goog")
_OWN_NAMES = re.compile(
    r"(?:.*\.)?(?:localhost6?|localdomain6?|local|internal|intranet|lan|home\.arpa)$"
    r"|ip6-(?:localhost|loopback)$|kubernetes(?:\.default.*)?$"
    r"|(?:.*\.)?(?:nip\.io|sslip\.io|xip\.io|localtest\.me|lvh\.me|vcap\.me|lacolhost\.com"
    r"|1u\.ms|rbndr\.us)$"
)
_NUMBER = r"(?:0x[0-9a-f]+|\d+)"
_LOOSE_ADDRESS = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_PLAIN_SCHEME = re.compile(r"(https?|wss?|ftp):[/\\]*(?=[^/\\])", re.IGNORECASE)

Reach = Literal["metadata", "own", "odd", "scheme"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Destination:
    """A host or URL that a guard has something to say about."""

    host: str
    reach: Reach
    note: str


def judge_url(url: str, *, schemes: frozenset[str] = _SCHEMES) -> Destination | None:
    """What is to be said about a URL; None for a plain one to a public host."""
    if re.search(r"[\\\x00-\x20\x7f]", url):
        return Destination("", "odd", "it holds blanks or backslashes")
    url = _PLAIN_SCHEME.sub(r"\1://", url, count=1)  # as browsers read `http:host`
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        return Destination("", "odd", f"it cannot be read: {error}")
    found = judge_host(host) if host else None
    if found is not None and found.reach == "metadata":
        return found
    if parts.scheme.lower() not in schemes:
        return Destination(host, "scheme", f"it uses {parts.scheme.lower()!r}")
    if "@" in parts.netloc:
        return Destination(host, "odd", f"what stands before '@' hides its host {host!r}")
    if not host:
        return Destination("", "odd", "it names no host")
    return found or _handed_on(url)


def _handed_on(url: str) -> Destination | None:
    """A URL inside another one, such as `?url=http://10.0.0.1`, that a server may fetch."""
    for inner in URL.findall(unquote(url)[8:]):
        host = inner.split("://", 1)[-1].split("/", 1)[0] if "://" in inner else ""
        found = judge_target(host) if host else None
        if found is not None and found.reach in ("metadata", "own"):
            return Destination(found.host, "odd", f"it hands on an address: {found.note}")
    return None


def judge_target(text: str) -> Destination | None:
    """What is to be said about `host`, `host:port` or `host:port/path`."""
    bare = text.strip().split("/", 1)[0] if "://" not in text else text
    if bare.startswith("[") or bare.count(":") < 2:
        bare = re.sub(r":\d*$", "", bare)
    return judge_url(text) if "://" in bare else judge_host(bare.rpartition("@")[2] or "x")


def is_address(text: str) -> bool:
    """Whether a text is an address of four numbers or of IPv6, with a port or a path maybe."""
    found = re.fullmatch(
        rf"(?:{_NUMBER}(?:\.{_NUMBER}){{3}}|\[[0-9a-f:.]+\]|[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*)"
        r"(?::\d+)?(?:/\S*)?",
        text,
        re.IGNORECASE,
    )
    return found is not None


def judge_host(host: str) -> Destination | None:
    """What is to be said about a host name or address; None for a public one."""
    name = unquote(unicodedata.normalize("NFKC", host)).strip("[]").rstrip(".").lower()
    name = name.replace("\u3002", ".").split("%", 1)[0]
    if name in _METADATA_NAMES or name.endswith(_INSIDE):
        return Destination(name, "metadata", "it tells the credentials of this machine")
    address = _address(name)
    if address is not None:
        return _judge_address(name, address)
    if _LOOSE_ADDRESS.fullmatch(name):
        return Destination(name, "odd", "it is a number, and no address")
    if not host.isascii() or "%" in host:
        return Destination(name, "odd", f"its host can be read as {name!r}")
    if _OWN_NAMES.fullmatch(name):
        return Destination(name, "own", "it is this machine or its network")
    return None


def _judge_address(name: str, address: Address) -> Destination | None:
    address = _unwrapped(address)
    if address in _METADATA or address.is_link_local:
        return Destination(str(address), "metadata", "it may tell the credentials of this machine")
    if not address.is_global or address.is_multicast:
        return Destination(str(address), "own", "it is this machine or its network")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return Destination(str(address), "odd", f"it is another way to write {address}")
    return None


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (any(address in net for net in _NAT64) or 1 < int(address) < 2**32):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


def _address(name: str) -> Address | None:
    """An address in any form that programs take: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        if not _LOOSE_ADDRESS.fullmatch(name) or len(name) > 60:
            return None
    parts = [_number(part) for part in name.split(".")]
    *front, last = parts
    if any(part > 255 for part in front):
        return None
    value = sum(part << (24 - 8 * at) for at, part in enumerate(front)) + last
    return ipaddress.IPv4Address(value) if value < 2**32 else None


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text, 16)
    octal = len(text) > 1 and text.startswith("0") and set(text) <= set("01234567")
    return int(text, 8) if octal else int(text)
