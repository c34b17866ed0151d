"""What detectors report about a call: findings, which a policy turns into a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from callboard.messages import ToolCall
from callboard.tooling.tools import Tool

Advice = Literal["deny", "ask", "note"]


class Severity(StrEnum):
    """How bad it would be if the finding is true; the order is that of the members."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a detector saw.

    - `category`: one dotted word that rules can name, such as "shell.destructive".
    - `text`: a sentence for the human who decides; it quotes no secret.
    - `where`: a JSON pointer into the arguments (RFC 6901), such as "/command"; "" is all.
    - `advice`: what to do where no rule says otherwise; "note" only informs.
    """

    category: str
    severity: Severity
    text: str
    where: str
    advice: Advice


# Pure and synchronous, but for looking at the file system. One that raises denies.
Detector = Callable[[ToolCall, Tool], tuple[Finding, ...]]
