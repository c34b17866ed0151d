"""Vaults: what stands behind the placeholders of one conversation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Protocol

from callboard.errors import CommitFailed, ConfigurationError


class Vault(Protocol):
    """Keeps the values of one conversation. Two conversations never share one."""

    def placeholder(self, name: str, value: str) -> str:
        """What stands for the value, "[EMAIL_1]": always the same for the same value.

        Raises:
            CommitFailed: the value could not be kept; nothing is stored or shown then.
        """
        ...

    def value(self, placeholder: str) -> str | None:
        """The value behind a placeholder, or None where there is none."""
        ...


class InMemoryVault:
    """A vault that is forgotten with the process, and its values with it."""

    def __init__(self) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._values)} values)"

    def placeholder(self, name: str, value: str) -> str:
        """As `Vault.placeholder`."""
        known = self._placeholders.get((name, value))
        if known is not None:
            return known
        count = sum([of == name for of, _ in self._placeholders]) + 1
        placeholder = f"[{name.upper()}_{count}]"
        self._keep(name, value, placeholder)
        self._learn(name, value, placeholder)
        return placeholder

    def value(self, placeholder: str) -> str | None:
        """As `Vault.value`."""
        return self._values.get(placeholder)

    def _keep(self, name: str, value: str, placeholder: str) -> None:
        """Nothing to do in memory."""

    def _learn(self, name: str, value: str, placeholder: str) -> None:
        self._placeholders[name, value] = placeholder
        self._values[placeholder] = value


class FileVault(InMemoryVault):
    """A vault in a file, for conversations that outlive their process. Readable by its owner.

    The values stand in it as they are: keep it apart from journals and audits, and remove it when
    nobody may read the values any more. One agent at a time writes it.

    Raises:
        ConfigurationError: the file cannot be read, or is no vault.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = Path(path)
        try:
            lines = self._path.read_text().splitlines() if self._path.exists() else []
            for line in lines:
                name, value, placeholder = json.loads(line)
                self._learn(name, value, placeholder)
        except (OSError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"{self._path} is no vault ({type(error).__name__}); name a new file or bring a"
                " backup back"
            ) from None

    def _keep(self, name: str, value: str, placeholder: str) -> None:
        line = json.dumps([name, value, placeholder]).encode() + b"\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise CommitFailed(f"the vault could not be written: {error}") from error
