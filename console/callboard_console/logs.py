"""The log of a command: structlog to stderr, from the level that the user asks for."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum

import structlog


class LogLevel(StrEnum):
    """How much the log tells."""

    DEBUG = "debug"  # each step of the agent, with its turn and duration
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: LogLevel) -> None:
    """Send the log to stderr, coloured on a terminal, from `level` upward."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=12),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # whatever it is by then
        cache_logger_on_first_use=False,
    )
