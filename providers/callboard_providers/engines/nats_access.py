"""Getting to NATS: addresses, credentials and TLS, and waiting until JetStream answers."""

# nats-py leaves parts of its types open; they end here.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any

import anyio
import nats.errors
from nats.aio.client import Client

from callboard.errors import ConfigurationError
from callboard_providers.engines.nats_line import JetStream

CONNECT_S = 5.0
RECONNECT_WAIT_S = 0.2


def servers_of(url: str) -> list[str]:
    """The servers of an engine's URL, which are separated by commas.

    Raises:
        ConfigurationError: one of them is empty.
    """
    servers = [one.strip() for one in url.split(",")]
    if not all(servers):
        raise ConfigurationError("the URL of a NATS engine is nats://HOST:PORT[,nats://...]")
    return servers


def shown(url: str) -> str:
    """An engine's URL without what is secret in it."""
    hosts = [one.rpartition("@")[2].removeprefix("nats://") for one in url.split(",")]
    return ",".join([f"nats://{one}" for one in hosts])


async def connected(url: str, options: Mapping[str, Any]) -> Client:
    """A client that comes back after every loss of its connection.

    `options` are those of `nats.connect`. Where they say nothing, the variables of NATS' own tools
    do: NATS_CREDS (a credentials file), NATS_CA, NATS_CERT and NATS_KEY (files for TLS).

    Raises:
        ConfigurationError: nobody answers there, or it does not let us in.
    """
    problems: list[Exception] = []

    async def note(error: Exception) -> None:
        if not (problems and isinstance(error, OSError)):  # what a server says tells more
            problems[:] = [error]

    given: dict[str, Any] = {"reconnect_time_wait": RECONNECT_WAIT_S, "error_cb": note}
    given |= {**_from_environment(options), **options}
    client = Client()
    try:
        with anyio.fail_after(CONNECT_S):
            await client.connect(
                servers_of(url),
                max_reconnect_attempts=-1,
                **given,
            )
    except (TimeoutError, OSError, nats.errors.Error) as error:
        await client.close()
        raise ConfigurationError(
            f"no NATS server lets us in at {shown(url)}: {_said(*problems[-1:] or [error])};"
            " `callboard engine up` starts one, and prints its URL with the token"
        ) from error
    return client


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _from_environment(options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    credentials = os.environ.get("NATS_CREDS")
    if credentials and "user_credentials" not in options:
        found["user_credentials"] = credentials
    authority, certificate = os.environ.get("NATS_CA"), os.environ.get("NATS_CERT")
    if (authority or certificate) and "tls" not in options:
        found["tls"] = _tls(authority, certificate, os.environ.get("NATS_KEY"))
    return found


def _tls(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authority)
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigurationError(
            f"NATS_CA, NATS_CERT or NATS_KEY names a file that is no use: {error}"
        ) from error
    return context


async def ready(url: str, *, within_s: float) -> None:
    """Wait until JetStream answers there: a cluster has to elect a leader first.

    Raises:
        ConfigurationError: it does not in time.
    """
    client = await connected(url, {})
    try:
        line = JetStream(client)
        with anyio.fail_after(within_s):
            while not await line.answers():  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(0.1)
    except TimeoutError:
        text = f"JetStream does not answer at {shown(url)} within {within_s:g} s"
        raise ConfigurationError(text) from None
    finally:
        await client.close()
