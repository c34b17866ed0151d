"""What went wrong with an OpenAI request, as a ModelError. Used by `openai_chat`.

A status alone does not tell: servers answer 500 for media they do not take, and 200 with an
error in the stream. So the words of the error count, and the status only where they say nothing.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz

import httpx2
import openai

from callboard.errors import ErrorCategory, ModelError
from callboard.json_text import EMPTY, FrozenDict, Json
from callboard_providers.models.json_shape import is_object

_MEDIA = "image|audio|video|vision|media"
_REFUSED = r"(not support|unsupported|(cannot|can't) process)"
_NO_MEDIA = rf"({_MEDIA})[\w\s]{{0,24}}{_REFUSED}|{_REFUSED}[\w\s:]{{0,16}}({_MEDIA})"
_ONE_OF_THEM = r"(format|mime|uploaded|valid (image|file)|sensitive|too (large|many))"  # not all
_WORDS: tuple[tuple[ErrorCategory, re.Pattern[str]], ...] = tuple(
    (category, re.compile(words, re.IGNORECASE | re.DOTALL))
    for category, words in (
        (ErrorCategory.QUOTA, r"insufficient_quota|exceeded your current quota|billing"),
        (
            ErrorCategory.CONTENT_FILTER,
            r"content_filter|content_policy|ResponsibleAIPolicy|content management policy",
        ),
        (
            ErrorCategory.UNSUPPORTED_MEDIA,
            rf"^(?!.*{_ONE_OF_THEM}).*({_NO_MEDIA})",
        ),
        (ErrorCategory.MALFORMED_OUTPUT, r"model produced output that does not match"),
        (ErrorCategory.BAD_REQUEST, r"failed to parse tool"),
    )
)
_OVERFLOW = re.compile(
    r"exceed_context_size|context[ _]length[ _]exceeded|maximum context length|context window"
    r"|exceeds the (available|maximum) context|(prompt|input|request)[\w ]* is too long"
    r"|reduce the length of the (messages|prompt|input)|too many (input )?tokens"
    r"|maximum (prompt|input) length|greater than the context length|(model )?token limit:? ?exceed"
    r"|exceeded model token limit|token count[\w() ]* exceeds the (maximum|limit)",
    re.IGNORECASE,
)
_STATUS: Mapping[int, ErrorCategory] = {
    401: ErrorCategory.AUTH,
    402: ErrorCategory.QUOTA,
    403: ErrorCategory.AUTH,
    407: ErrorCategory.AUTH,
    408: ErrorCategory.NETWORK,
    409: ErrorCategory.OVERLOADED,
    413: ErrorCategory.CONTEXT_OVERFLOW,
    425: ErrorCategory.OVERLOADED,
    429: ErrorCategory.RATE_LIMITED,
}
_KEYLIKE = re.compile(r"\b(sk|key|Bearer)[-_ ][\w*.-]{6,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{120,}={0,2}")  # media that a provider repeats
_LONGEST = 600  # characters of a provider's text: some repeat the request in it

TRANSPORT = (openai.APIConnectionError, httpx2.TransportError, httpx2.StreamError)
FAILURES = (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, ValueError)


def model_error(error: Exception, *, secret: str = "") -> ModelError:
    """The ModelError of what the SDK or its HTTP client raised. `secret` is cut out of its text."""
    if isinstance(error, TRANSPORT):
        cause = error.__cause__ or error
        return _made(f"no answer: {_name(cause)}: {cause}", ErrorCategory.NETWORK, secret=secret)
    if not isinstance(error, openai.APIError):
        text = f"the answer could not be read: {_name(error)}: {error}"
        return _made(text, ErrorCategory.MALFORMED_OUTPUT, secret=secret)
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else EMPTY
    words = " ".join(str(word) for word in (error.code, error.type, error.message) if word)
    return _made(
        f"{error.message} (status {status}, {error.type or error.code or 'no type'})",
        category(words, status),
        status=status,
        retry_after_s=retry_after_s(headers),
        final=headers.get("x-should-retry") == "false",
        secret=secret,
    )


def stream_error(told: Json, *, secret: str = "") -> ModelError:
    """The ModelError of an error object in the middle of a stream; its code may be a status."""
    fields = told if is_object(told) else FrozenDict(message=told)
    code = fields.get("code")
    status = int(str(code)) if re.fullmatch(r"[45]\d\d", str(code)) else None
    words = " ".join(str(fields[key]) for key in ("code", "type", "message") if fields.get(key))
    return _made(f"in the stream: {words}", category(words, status), status=status, secret=secret)


def _made(
    text: str,
    category: ErrorCategory,
    *,
    status: int | None = None,
    retry_after_s: float | None = None,
    final: bool = False,
    secret: str,
) -> ModelError:
    if secret:
        text = text.replace(secret, "...")
    text = _BASE64.sub("(data)", _KEYLIKE.sub(r"\1-...", text))[:_LONGEST]
    return ModelError(
        text, category=category, status=status, retry_after_s=retry_after_s, final=final
    )


def _name(error: BaseException) -> str:
    return type(error).__name__


def category(words: str, status: int | None) -> ErrorCategory:
    """Words first. A 429 that speaks of tokens is a rate limit and no overflow."""
    if status != 429 and (status is None or status < 500) and _OVERFLOW.search(words):
        return ErrorCategory.CONTEXT_OVERFLOW
    for found, pattern in _WORDS:
        if pattern.search(words):
            return found
    if "rate_limit" in words:
        return ErrorCategory.RATE_LIMITED
    if status is None or status >= 500:
        return ErrorCategory.OVERLOADED
    return _STATUS.get(status, ErrorCategory.BAD_REQUEST)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as
    a date (RFC 9110, 10.2.3). None if neither is there or makes sense.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(wait_s) and wait_s >= 0:
            return wait_s
    date = parsedate_tz(headers.get("retry-after", ""))
    return max(mktime_tz(date) - time.time(), 0.0) if date else None
