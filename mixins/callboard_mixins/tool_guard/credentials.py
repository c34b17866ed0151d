"""What credentials look like in a text, so that they are neither sent out nor shown."""

from __future__ import annotations

import re

MOST_CHARACTERS = 200_000  # of one text that detectors look at
_NAMED = (
    r"(?i:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token|client[_-]?secret)"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?![$<{*x])[A-Za-z0-9+/_.~!@#%^&-]{12,}"
)
_SHAPES = (
    ("a private key", r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"),
    ("an AWS key", r"\b(?:AKIA|ASIA|AGPA|AROA)[0-9A-Z]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{18,}"),
    (
        "an API key",
        r"\bsk-(?:[a-z]+-){0,3}[A-Za-z0-9_-]{20,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    ("a Google key", r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/T[\w/]{20,}"),
    ("a package registry token", r"\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{40,}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("a signed token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a password in a URL", r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,200}@"),
    ("a bearer token", r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{20,}"),
    ("a credential", _NAMED),
)
_KINDS = tuple((kind, re.compile(shape)) for kind, shape in _SHAPES)
_ANY = re.compile("|".join(f"(?:{shape})" for _, shape in _SHAPES))


def credential_in(text: str) -> str | None:
    """What kind of credential a text holds, such as "a GitHub token"; None for none."""
    return next((kind for kind, shape in _KINDS if shape.search(text)), None)


def without_credentials(text: str) -> str:
    """The text with what looks like a credential replaced."""
    return _ANY.sub("***", text)
