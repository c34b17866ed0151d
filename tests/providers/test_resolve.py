"""Models by name: every kind, and every way to get a name wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from callboard.errors import ConfigurationError, MissingExtra
from callboard.testing import ask_model, make_request
from callboard_providers.models import LocalModel, OpenAIChatModel, resolve_model
from callboard_providers.models.resolve import load


def test_openai_by_name() -> None:
    model = resolve_model("openai:gpt-5")
    assert isinstance(model, OpenAIChatModel)
    assert model.name == "openai:gpt-5"


def test_local_by_name() -> None:
    model = resolve_model("local:qwen2.5-coder-0.5b")
    assert isinstance(model, LocalModel)
    assert model.name == "local:qwen2.5-coder-0.5b"


def test_local_alone_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBOARD_LOCAL_MODEL", "qwen2.5-coder-0.5b")
    assert resolve_model("local").name == "local:qwen2.5-coder-0.5b"


@pytest.mark.anyio
async def test_scripted_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps([{"say": "hello"}]))
    model = resolve_model(f"scripted:{file}")
    assert "hello" in repr(await ask_model(make_request(model)))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-5", "'gpt-5'.*openai"),
        ("nope:x", "'nope:x'.*local, openai, scripted"),
        ("openai", "'openai:gpt-5'"),
        ("openai:", "'openai:gpt-5'"),
        ("scripted:", "'scripted:answers.json'"),
        ("local:nope", "'nope'.*qwen2.5-coder-0.5b"),
        ("local:/no/such.gguf", "no model file '/no/such.gguf'"),
    ],
)
def test_a_wrong_name_says_the_remedy(name: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        resolve_model(name)


def test_a_missing_package_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "needs_a_vendor.py").write_text(
        "raise ModuleNotFoundError('no openai', name='openai.types')"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(MissingExtra, match=r"callboard\[openai\]"):
            load("needs_a_vendor:anything")
    finally:
        sys.path.remove(str(tmp_path))
