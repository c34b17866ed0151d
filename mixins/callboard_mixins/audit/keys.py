"""Ed25519 keys of an audit, from PEM files as `openssl genpkey -algorithm ed25519` writes them."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from callboard.errors import ConfigurationError, MissingExtra

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_private
    from cryptography.hazmat.primitives.serialization import load_pem_public_key as load_public
except ModuleNotFoundError as missing:
    raise MissingExtra("cryptography", extra="audit") from missing


class SigningKey:
    """A private key. `SigningKey.read("audit.pem")`; its repr does not show it.

    Raises:
        ConfigurationError: the file cannot be read, or holds no Ed25519 private key.
    """

    __slots__ = ("_key",)

    def __init__(self, pem: bytes, *, password: bytes | None = None) -> None:
        try:
            key = load_private(pem, password)
        except (ValueError, TypeError) as error:
            raise ConfigurationError(
                f"this is no private key, or has a password: {error}"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError("an audit is signed with an Ed25519 key; this is another kind")
        self._key = key

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, password: bytes | None = None) -> SigningKey:
        """The key in a PEM file."""
        return cls(_read(path), password=password)

    def sign(self, data: bytes) -> str:
        """The signature in base64."""
        return base64.b64encode(self._key.sign(data)).decode()


class PublicKey:
    """The public half, which checks signatures. `PublicKey.read("audit.pub")`.

    Raises:
        ConfigurationError: the file cannot be read, or holds no Ed25519 public key.
    """

    __slots__ = ("_key",)

    def __init__(self, pem: bytes) -> None:
        try:
            key = load_public(pem)
        except ValueError as error:
            raise ConfigurationError(f"this is no public key: {error}") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigurationError("an audit is signed with an Ed25519 key; this is another kind")
        self._key = key

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PublicKey:
        """The key in a PEM file."""
        return cls(_read(path))

    def fits(self, signature: str, data: bytes) -> bool:
        """Whether the signature is one of this data by this key."""
        try:
            self._key.verify(base64.b64decode(signature, validate=True), data)
        except (InvalidSignature, binascii.Error):
            return False
        return True


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{os.fspath(path)}: {error.strerror}") from None
