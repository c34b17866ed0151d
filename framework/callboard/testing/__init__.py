"""What tests of agents are made of: a scripted model, conformance checks, virtual time.

Nothing here needs pytest.
"""

from __future__ import annotations

from callboard.testing.asking import ask_model, make_request, make_result
from callboard.testing.difference import Difference
from callboard.testing.engine_check import check_engine
from callboard.testing.layer_check import check_layer
from callboard.testing.model_check import check_model
from callboard.testing.replaying import Replay, replayed
from callboard.testing.script import (
    Answer,
    ScriptItem,
    call,
    call_piece,
    drop,
    eof,
    error,
    finish,
    pause,
    raw_call,
    say,
    stream,
    think,
    usage,
)
from callboard.testing.script_file import load_script, read_script
from callboard.testing.scripted_model import ScriptedModel
from callboard.testing.transcript_check import pairing_faults, request_faults
from callboard.testing.virtual_time import virtual_backend, virtual_backends

__all__ = [
    "Answer",
    "Difference",
    "Replay",
    "ScriptItem",
    "ScriptedModel",
    "ask_model",
    "call",
    "call_piece",
    "check_engine",
    "check_layer",
    "check_model",
    "drop",
    "eof",
    "error",
    "finish",
    "load_script",
    "make_request",
    "make_result",
    "pairing_faults",
    "pause",
    "raw_call",
    "read_script",
    "replayed",
    "request_faults",
    "say",
    "stream",
    "think",
    "usage",
    "virtual_backend",
    "virtual_backends",
]
