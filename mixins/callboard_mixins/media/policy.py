"""What a `MediaFilterMixin` lets through to a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from callboard.errors import ConfigurationError
from callboard.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPolicy:
    """Which files may be read, which URLs are passed on, and how large media may be.

    `roots` are the folders whose files may be sent (`url="file:///..."` or a path); by default
    none. URLs are never fetched here: those of `schemes` go to the provider as they are, which
    fetches them (a local server then does so from this machine). An image is scaled down to
    `longest_side` pixels and `image_bytes`, which takes Pillow (the extra "media"); one of more
    than `most_pixels` is not even opened. Other media above `other_bytes` are left out.

    Raises:
        ConfigurationError: a root is no folder, or a number is not above zero.
    """

    roots: Sequence[str | os.PathLike[str]] = ()
    schemes: frozenset[str] = frozenset({"http", "https"})
    longest_side: int = 2048
    image_bytes: int = 4_000_000
    other_bytes: int = 20_000_000
    most_pixels: int = 80_000_000
    workspaces: tuple[Workspace, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.roots, (str, os.PathLike)):
            raise ConfigurationError(f"MediaPolicy(roots={self.roots!r}): give a list of folders")
        for name in ("longest_side", "image_bytes", "other_bytes", "most_pixels"):
            value = getattr(self, name)
            if not value > 0:
                raise ConfigurationError(f"MediaPolicy({name}={value!r}): it must be above zero")
        object.__setattr__(self, "workspaces", tuple([Workspace(root) for root in self.roots]))
