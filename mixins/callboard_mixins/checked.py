"""Whether a layer was given what its keyword wants; not everybody asks a type checker."""

from __future__ import annotations

from callboard.errors import ConfigurationError


def check_given(keyword: str, value: object, kind: type) -> None:
    """Raise ConfigurationError unless the value of this keyword is of this kind."""
    if not isinstance(value, kind):
        raise ConfigurationError(
            f"{keyword}={value!r} is no {kind.__name__}: write {keyword}={kind.__name__}(...)"
        )
