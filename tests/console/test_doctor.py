"""`callboard doctor` tells which models can answer, and what mends the rest."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.console.command import callboard

NOWHERE = "http://127.0.0.1:9/v1"  # the discard port: nothing listens


class Provider(BaseHTTPRequestHandler):
    """Lists no models for the key `right`; refuses any other."""

    def do_GET(self) -> None:
        good = self.headers["Authorization"] == "Bearer right"
        body = b'{"object": "list", "data": []}' if good else b"{}"
        self.send_response(200 if good else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def provider() -> Generator[str]:
    """The address of a provider on this machine."""
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def doctor(folder: Path, *options: str, key: str, url: str) -> subprocess.CompletedProcess[str]:
    """`callboard doctor` without local models, with one provider."""
    return callboard(
        "doctor",
        *options,
        cwd=folder,
        CALLBOARD_MODEL_DIR=str(folder),
        OPENAI_API_KEY=key,
        OPENAI_BASE_URL=url,
    )


def test_without_any_model_it_says_how_to_get_one(tmp_path: Path) -> None:
    done = doctor(tmp_path, key="", url="")
    assert done.returncode == 3
    assert "callboard model fetch qwen2.5-coder-1.5b" in done.stdout
    assert "export OPENAI_API_KEY=" in done.stdout
    assert done.stdout.splitlines()[-1] == "No model can answer yet."


def test_a_provider_that_answers_is_enough(tmp_path: Path, provider: str) -> None:
    done = doctor(tmp_path, key="right", url=provider)
    assert done.returncode == 0
    assert f"{provider} answers" in done.stdout
    assert done.stdout.splitlines()[-1] == "`callboard ask` can answer."


def test_a_wrong_key_is_told_and_never_shown(tmp_path: Path, provider: str) -> None:
    done = doctor(tmp_path, key="sk-wrong", url=provider)
    assert "status 401" in done.stdout
    assert "sk-wrong" not in done.stdout + done.stderr


def test_a_provider_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    done = doctor(tmp_path, key="right", url=NOWHERE)
    assert "failed  openai" in done.stdout
    assert "Traceback" not in done.stderr


def test_it_asks_nobody_when_told_so(tmp_path: Path) -> None:
    assert "not asked" in doctor(tmp_path, "--no-reach", key="right", url=NOWHERE).stdout
