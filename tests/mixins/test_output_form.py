"""The form of an answer: every schema becomes an object's, and what is read comes back."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field

from callboard.errors import ConfigurationError
from callboard_mixins.output_form import OutputForm


class Inner(BaseModel):
    """A part of an answer."""

    word: SecretStr


class Holds(BaseModel):
    """An answer with a secret further down."""

    parts: list[Inner]


class Excluded(BaseModel):
    """An answer that is not written whole."""

    x: int
    y: int = Field(exclude=True)


class Renamed(BaseModel):
    """An answer that is written under another name than it is read."""

    x: int = Field(validation_alias="in", serialization_alias="out")


class Counted(BaseModel):
    """An answer with something that is worked out."""

    x: int

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def twice(self) -> int:
        return 2 * self.x


@pytest.mark.parametrize(
    "text", ["42", "true", '{"a": 1}', "[1]", "two\nlines", "null", "```json\n7\n```"]
)
def test_a_text_that_is_wanted_may_look_like_json(text: str) -> None:
    assert OutputForm(str).read(text) == text


@pytest.mark.parametrize("text", ['"yes"', '{"answer": "yes"}', "yes", '```\n"yes"\n```'])
def test_a_text_may_be_given_as_json_too(text: str) -> None:
    form: OutputForm[Any] = OutputForm({"type": "string", "enum": ["yes", "no"]})
    assert form.read(text) == "yes"


def test_a_number_must_stand_in_the_object() -> None:
    with pytest.raises(ValueError, match="one property 'answer'"):
        OutputForm(int).read("42")


@pytest.mark.parametrize("place", ["$defs", "definitions"])
def test_references_keep_their_meaning_in_the_object(place: str) -> None:
    reference = {"$ref": f"#/{place}/A"}
    schema = {"anyOf": [reference, {"type": "integer"}], place: {"A": {"const": "$ref"}}}
    form: OutputForm[Any] = OutputForm(schema)
    assert form.read('{"answer": "$ref"}') == "$ref"
    with pytest.raises(ValueError, match="not valid under any"):
        form.read('{"answer": "other"}')


def test_a_schema_that_refers_to_itself_keeps_its_meaning() -> None:
    form: OutputForm[Any] = OutputForm({"type": "array", "items": {"$ref": "#"}})
    assert form.read('{"answer": [[], [[]]]}') == ((), ((),))
    with pytest.raises(ValueError, match="not of type"):
        form.read('{"answer": [[1]]}')


@pytest.mark.parametrize(
    ("wanted", "name"), [(SecretStr, None), (Holds, "word"), (Excluded, "y"), (Renamed, "in")]
)
def test_what_would_not_come_back_is_refused(wanted: Any, name: str | None) -> None:
    """A journal holds the answer as JSON, and a restart reads it there."""
    with pytest.raises(ConfigurationError, match=name or "answer"):
        OutputForm(wanted)


def test_what_is_worked_out_comes_back() -> None:
    form = OutputForm(Counted)
    assert form.typed(form.read('{"x": 2}')).twice == 4
