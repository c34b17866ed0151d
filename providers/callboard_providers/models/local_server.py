"""The child process that serves one model file on the loopback. Started by `local_process`.

It reads one line of JSON (its `settings`, the key among them: arguments can be read by every
user of the machine) from stdin, prints one line of JSON when the model is ready, and ends when
stdin closes, that is, when its parent is gone however that came about. It imports nothing of
Callboard, so that it starts by its path alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

engine = import_module("xllamacpp")  # which has no types
PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def end_with_parent(parent_id: int) -> None:
    """Have the kernel kill this process when its parent dies, where the kernel can (Linux).

    The pipe alone would do but for the seconds in which the loading of a model holds the GIL.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_id:
        os._exit(0)


def end_with_stdin() -> None:
    """End at once, from a thread, when stdin closes."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def private_stdout() -> int:
    """A descriptor of stdout for the one line; whatever the engine prints goes to stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def parameters(settings: dict[str, Any]) -> Any:
    """The engine's parameters. Its defaults would serve a web page, let any web page ask, and
    keep 8 GiB of prompts.
    """
    chosen = engine.CommonParams()
    chosen.model.path = settings["path"]
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = 0
    chosen.api_keys = [settings["key"]]
    chosen.model_alias = {settings["alias"]}
    chosen.n_ctx = settings["context_tokens"]
    chosen.n_parallel = settings["parallel"]
    chosen.kv_unified = True  # the slots share the context; else each has its part of it
    chosen.n_threads_http = 4
    chosen.cpuparams.n_threads = settings["threads"]
    chosen.cpuparams_batch.n_threads = settings["threads"]
    chosen.use_jinja = True
    chosen.ui = False
    chosen.endpoint_slots = False
    chosen.endpoint_metrics = False
    chosen.cache_ram_mib = 128
    chosen.cors_origins = "http://127.0.0.1"
    chosen.cors_origins_explicit = True
    chosen.cors_credentials = False
    chosen.verbosity = 0
    if settings["template"]:
        chosen.chat_template = Path(settings["template"]).read_text()
    return chosen


def main() -> None:
    """Serve until stdin closes."""
    out = private_stdout()
    line = bytearray()
    while not line.endswith(b"\n"):
        line += os.read(0, 1) or os._exit(0)
    settings = json.loads(line)
    end_with_parent(settings["parent_id"])
    end_with_stdin()
    os.nice(settings["niceness"])
    try:
        server = engine.Server(parameters(settings))
    except (RuntimeError, OSError, ValueError, TypeError) as error:  # the parent raises it
        os.write(out, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        os._exit(1)
    os.write(out, json.dumps({"address": server.listening_address}).encode() + b"\n")
    threading.Event().wait()


if __name__ == "__main__":
    main()
