"""What redaction looks for: secrets of well-known shapes, and personal data with a checksum
where there is one. Pure; used by `finding.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from callboard.errors import ConfigurationError

REACH = 200  # characters that a match of a user's pattern may have, where it holds blanks
Within = Callable[[str], tuple[int, int] | None]


def _whole(found: str) -> tuple[int, int]:
    return 0, len(found)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Something to hide. `Pattern("ticket", r"TCK-\\d{6}")` hides ticket numbers.

    `regex` finds it; where that has a group `hidden`, only the group is hidden. `hints` are texts
    in small letters of which one must be there, and a text of fewer than `shortest` characters
    holds none; both save time. `within` says which part of a match it is, or None (a checksum does
    not fit).

    A stream is held back while its end could become a match. `reach` is the longest match that
    has blanks in it; 0 where there are none. In its place `lead` may match such an end.

    Raises:
        ConfigurationError: the name is no word, or the regular expression is wrong.
    """

    name: str
    regex: str
    hints: tuple[str, ...] = ()
    within: Within = _whole
    lead: str | None = None
    reach: int = REACH
    shortest: int = 1

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]+(?:_[a-z]+)*", self.name):
            raise ConfigurationError(f"Pattern({self.name!r}): name it in words: 'api_key'")
        for text in (self.regex, self.lead or ""):
            try:
                compiled = re.compile(text)
            except re.error as error:
                raise ConfigurationError(f"Pattern {self.name!r}: {text!r}: {error}") from None
            if text and compiled.match(""):
                raise ConfigurationError(f"Pattern {self.name!r}: {text!r} matches nothing at all")


def is_mixed(found: str) -> tuple[int, int] | None:
    """The whole, if it has the look of a secret: letters and other characters, in no order."""
    letters = sum([character.isalpha() for character in found])
    return _whole(found) if 0 < letters < len(found) and _entropy(found) > 2.5 else None


def _entropy(text: str) -> float:
    """Bits a character."""
    size = len(text)
    return -sum([n / size * math.log2(n / size) for n in Counter(text).values()])


def card_number(found: str) -> tuple[int, int] | None:
    """The first groups of digits that pass the check of payment cards (Luhn)."""
    edges = [m.span() for m in re.finditer(r"\d+", found)]
    for first, (start, _) in enumerate(edges):
        for _, end in edges[first:]:
            digits = [int(c) for c in found[start:end] if c.isdigit()]
            if len(digits) > 19:
                break
            if len(digits) >= 13 and len(set(digits)) > 1 and _luhn(digits):
                return start, end
    return None


def _luhn(digits: list[int]) -> bool:
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def iban(found: str) -> tuple[int, int] | None:
    """The first groups that are an international bank account number (ISO 13616)."""
    for end in [m.end() for m in re.finditer(r"\S+", found)]:
        bare = found[:end].replace(" ", "")
        if 15 <= len(bare) <= 34:
            number = "".join([str(int(c, 36)) for c in bare[4:] + bare[:4]])
            if int(number) % 97 == 1:
                return 0, end
    return None


def phone_number(found: str) -> tuple[int, int] | None:
    """The whole, if it has as many digits as a telephone number."""
    return _whole(found) if 8 <= sum([c.isdigit() for c in found]) <= 15 else None


_DIGITS = tuple("0123456789")
_KEY_HINTS = tuple(
    "sk- k_live_ k_test_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- xox akia asia aiza ya29. hf_"
    " npm_ pypi- sg. gsk_ xai- age-secret".split()
)
_NAME_HINTS = tuple(
    "passw passphrase pwd secret token api access private credential key= sig=".split()
)
_KEY = r"(?:RSA |EC |DSA |OPENSSH |ENCRYPTED |PGP )?PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = rf"-----END {_KEY}"
_TOKEN = r"[A-Za-z0-9._~+/=-]"
_SECRET_NAME = (
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?|[?&]key|[?&]sig)"
)
_NAMED = rf"{_SECRET_NAME}[A-Za-z0-9_-]{{0,40}}\\?[\"']?\s{{0,8}}"

SECRETS: tuple[Pattern, ...] = (
    Pattern(
        "private_key",
        rf"-----BEGIN {_KEY}(?:[\s\S]{{0,20000}}?{_KEY_END}|[A-Za-z0-9+/=\s\\:,_-]*)",
        hints=("private key",),
        shortest=27,
        lead=rf"-----BEGIN (?:[A-Z ]*-{{0,5}}|{_KEY}(?:(?!{_KEY_END})[\s\S])*)\Z",
    ),
    Pattern(
        "api_key",
        r"(?<![A-Za-z0-9])(?:sk-[\w-]{20,}|[rs]k_(?:live|test)_\w{16,}|gh[oprsu]_\w{36,}"
        r"|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}"
        r"|AIza[\w-]{35}|ya29\.[\w-]{20,}|hf_\w{30,}|npm_\w{36,}|pypi-[\w-]{50,}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,}|gsk_\w{40,}|xai-\w{40,}|AGE-SECRET-KEY-1\w{50,})",
        hints=_KEY_HINTS,
        shortest=15,
        reach=0,
    ),
    Pattern(
        "token",
        r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
        hints=("eyj",),
        reach=0,
        shortest=24,
    ),
    Pattern(
        "token",
        rf"\b(?i:bearer|basic)\s{{1,8}}(?P<hidden>{_TOKEN}{{16,}})",
        hints=("bearer", "basic"),
        shortest=22,
        within=is_mixed,
        lead=rf"\b(?i:bearer|basic)\s{{1,8}}{_TOKEN}*\Z",
    ),
    Pattern(
        "password",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@\"']*:(?P<hidden>[^\s/@\"']+)@",
        hints=("://",),
        shortest=8,
        reach=0,
    ),
    Pattern(
        "secret",
        rf"{_NAMED}(?:=>|[:=])\s{{0,8}}\\?[\"']?"
        r"(?P<hidden>(?:[^\s\"'&,;<>(){}\[\]\\]|\\(?![\"'])){8,})",
        hints=_NAME_HINTS,
        shortest=12,
        within=is_mixed,
        lead=rf"{_NAMED}(?:=>?|:)?\s{{0,8}}\S*\Z",
    ),
)

_DIGITS_LEAD = r"[+(]?\d[\d ()./-]*\Z"

PERSONAL: tuple[Pattern, ...] = (
    Pattern(
        "email",
        r"(?<![\w.%+-])[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*\.[^\W\d_]{2,24}(?![\w-])",
        hints=("@",),
        shortest=6,
        reach=0,
    ),
    Pattern(
        "card",
        r"(?<![\d.-])\d(?:[ -]?\d){12,60}(?!\d)",
        hints=_DIGITS,
        shortest=13,
        within=card_number,
        lead=_DIGITS_LEAD,
    ),
    Pattern(
        "iban",
        r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){3,10}\b",
        hints=_DIGITS,
        shortest=15,
        within=iban,
        lead=r"\b[A-Z]{2}\d{2}[A-Z0-9 ]*\Z",
    ),
    Pattern(
        "phone",
        r"(?<![\w.:+-])(?:\+\d[\d ()./-]{6,20}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"
        r"|\(?0\d{1,4}\)?[ /-]\d{3,}(?:[ -]?\d{2,}){0,4})(?!\w)",
        hints=_DIGITS,
        shortest=8,
        within=phone_number,
        lead=_DIGITS_LEAD,
    ),
)
