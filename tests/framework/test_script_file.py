"""Scripts as JSON files: the same answers, and errors that say where the fault is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callboard.assembler import Complete
from callboard.errors import ConfigurationError
from callboard.json_text import Json
from callboard.testing import (
    call_piece,
    drop,
    eof,
    error,
    finish,
    load_script,
    make_request,
    pause,
    raw_call,
    read_script,
    say,
    stream,
    think,
    usage,
)
from callboard.testing.asking import ask_model


def test_whole_answers() -> None:
    calls: Json = [
        {"id": "", "name": "add", "arguments": '{"a":'},
        {"name": "now", "arguments": {"b": 1}},
    ]
    entry = {"say": "hi", "calls": calls, "stop": "length", "usage": {"in": 3, "out": 2}}
    said = say("hi", raw_call("add", '{"a":', id=""), raw_call("now", '{"b":1}'), stop="length",
               usage=usage(3, 2).usage)  # fmt: skip
    assert read_script([entry, "ok", {"calls": calls}])[:2] == [said, say("ok")]


def test_streamed_answers() -> None:
    entry = """{"stream": [{"think": "hm"}, {"sig": "AAA"}, {"choices": []}, {"text": "he"},
        {"call": {"index": 5, "id": "c", "name": "add", "args": "{}"}}, {"sleep": 5},
        {"choices": [], "usage": {"in": 8}}, {"finish": "tool_use"}]}"""
    piece = call_piece("{}", id="c", name="add", index=5)
    played = stream(think("hm"), think(signature="AAA"), "he", piece, pause(5.0), usage(8),
                    finish("tool_use"))  # fmt: skip
    assert read_script([json.loads(entry)]) == [played]


def test_ends_that_are_none() -> None:
    assert read_script([{"stream": [{"text": "a"}, {"eof": True}]}]) == [stream("a", eof())]
    dropped, failed = read_script(
        [{"stream": [{"drop": "reset"}]}, {"stream": [{"error": {"category": "quota"}}]}]
    )
    assert repr(dropped) == repr(stream(drop("reset")))
    assert repr(failed) == repr(stream(error(category="quota")))


@pytest.mark.anyio
async def test_a_file_plays_and_then_repeats_done(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text(json.dumps(["one"]))
    model = load_script(path)
    results = [await ask_model(make_request(model)) for _ in range(3)]
    texts = [result.message.text for result in results if isinstance(result, Complete)]
    assert (model.name, texts) == (f"scripted:{path}", ["one", "done", "done"])


FAULTS: list[tuple[Json, str]] = [
    ({"say": "x"}, "demo: a script is a list of answers, not {'say': 'x'}"),
    ([{"speak": "x"}], "demo, entry 1: .* has neither .say. nor"),
    (["ok", {"say": "x", "stopp": "end"}], "demo, entry 2: 'stopp' is not known here"),
    ([{"say": "x", "stop": "stop"}], "entry 1: 'stop' is no stop reason"),
    ([{"calls": [{"arguments": {}}]}], "entry 1: 'name' is missing"),
    ([{"say": 5}], "entry 1: 5 must be a text"),
    ([{"stream": [{"text": "a"}, {"txt": "b"}]}], "entry 1: piece 2: 'txt' is not known"),
    ([{"stream": [{"error": {"category": "no"}}]}], "piece 1: 'no' is not a valid ErrorCat"),
    ([{"stream": ["a"]}], "piece 1: 'a' must be an object"),
]


@pytest.mark.parametrize(("script", "fault"), FAULTS)
def test_faults_name_the_file_the_entry_and_what_is_known(script: Json, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault):
        read_script(script, source="demo")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.json' cannot be read"):
        load_script(tmp_path / "nowhere.json")


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text("- say: x")
    with pytest.raises(ConfigurationError, match=r"demo\.json' is not JSON"):
        load_script(path)
