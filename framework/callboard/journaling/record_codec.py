"""Records as bytes and back, for journals that outlive their process: one JSON object each.

`{"v": 1, "kind": "observed", ...the fields of the record}`. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaSerializer, from_json, to_jsonable_python
from pydantic_core.core_schema import CoreConfig

from callboard.approvals import CallDigest
from callboard.errors import ConfigurationError, JournalDamaged
from callboard.journaling.records import ApprovalRequested, LayerFact, Record
from callboard.json_text import Json, freeze

VERSION = 1  # goes up when a record that was written before would be read wrongly

Document = dict[str, Json]
Upcasts = Mapping[tuple[int, str], Callable[[Document], Document]]

# (version, kind) -> the document as the next version writes it. What does not change has no entry.
UPCASTS: Upcasts = MappingProxyType({})

_KINDS: Mapping[str, type[Record]] = MappingProxyType({cls.kind: cls for cls in get_args(Record)})
_NAN_AS_TEXT = CoreConfig(ser_json_inf_nan="strings")
_SHOWN = 3  # faults that an error names


_REPLACED = "\ufffd".encode()  # what the serializer makes of half a character in a key


def encode(record: Record) -> bytes:
    """The record as one line of JSON without a line end.

    NaN and infinity, which JSON does not have, become text. Lone halves of characters are kept
    as escapes.

    Raises:
        ConfigurationError: the record holds a value that JSON cannot hold; the text names it.
    """
    head, writer = _writer(record.kind)
    try:
        body = writer.to_json(record, fallback=_text, warnings=False)
    except ValueError as error:  # text that is no UTF-8, or a value that is no JSON
        body = _with_escapes(record, error)
    if _REPLACED in body:  # half a character in a key, or a sign that stood there
        body = _with_escapes(record, None)
    return head + body[1:]


@cache
def _writer(kind: str) -> tuple[bytes, SchemaSerializer]:
    """What begins records of a kind, and what writes them: three times as fast as a serializer
    that looks at each value.

    Made when the first one is written, which takes some 4 ms.
    """
    head = f'{{"v":{VERSION},"kind":"{kind}",'.encode()
    return head, SchemaSerializer(_for_writing(_reader(kind)[0].core_schema), _NAN_AS_TEXT)


def _for_writing(schema: Any) -> Any:
    """The schema, with numbers that JSON does not have as text also inside of dataclasses, and
    with the members of enums as the text that they are: to ask one for its value takes 1.5 us.
    """
    if isinstance(schema, list):
        return [_for_writing(part) for part in cast(Sequence[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _for_writing(part) for key, part in cast(Document, schema).items()}
    if inner.get("type") == "enum" and inner.get("sub_type") == "str":
        return {"type": "str", "ref": inner["ref"]}
    return inner | {"config": _NAN_AS_TEXT} if inner.get("type") == "dataclass" else inner


def _text(value: object) -> str:
    if isinstance(value, CallDigest):
        return str(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value: {value!r:.200}")


def _with_escapes(record: Record, problem: Exception | None) -> bytes:
    """Text with lone halves of characters has no UTF-8, but it has an ASCII form."""
    try:
        return json.dumps(_plain(record), separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ConfigurationError(
            f"a {record.kind!r} record cannot be written: {problem}. Give JSON values to what is"
            " recorded: payloads, outputs and a layer's own facts"
        ) from problem


def _plain(value: object) -> Json:
    """What `to_json` writes, as dicts and lists."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else json.dumps(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast(Sequence[object], value)]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[str, object], value).items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return to_jsonable_python(value, fallback=_text)


def decode(data: bytes, *, upcasts: Upcasts = UPCASTS) -> Record:
    """The record that `encode` wrote, now or in an older version.

    Raises:
        JournalDamaged: with the reason, and what to do about it.
    """
    document = _document(data)
    version = document.pop("v", None)
    kind = document.get("kind")
    if type(version) is not int or not isinstance(kind, str):
        raise JournalDamaged(f"a record needs a version and a kind, not {version!r} and {kind!r}")
    if version != VERSION:
        document = _upcast(document, version, upcasts)
    return _read(document)


def _document(data: bytes) -> Document:
    try:
        document = from_json(data)
    except ValueError:
        document = _with_halves(data)
    if not isinstance(document, dict):
        raise JournalDamaged(f"a record is a JSON object, not {type(document).__name__}")
    return cast(Document, document)


def _with_halves(data: bytes) -> Json:
    """As the fast parser, which knows no lone halves of characters and less depth."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise JournalDamaged(f"a record is not JSON: {error}") from None


def _upcast(document: Document, version: int, upcasts: Upcasts) -> Document:
    kind = document["kind"]
    if version > VERSION:
        raise JournalDamaged(
            f"a record {kind!r} has version {version}, and this callboard reads up to version"
            f" {VERSION}: install the newer callboard that wrote it"
        )
    oldest = min([of for of, _ in upcasts], default=VERSION)
    if version < oldest:
        raise JournalDamaged(
            f"a record {kind!r} has version {version}, and the oldest version is {oldest}"
        )
    for passed in range(version, VERSION):
        change = upcasts.get((passed, document["kind"]))
        document = document if change is None else change(document)
    return document


def _read(document: Document) -> Record:
    kind = document.pop("kind")
    if kind not in _KINDS:
        raise JournalDamaged(
            f"there is no record {kind!r} in version {VERSION}: install the newer callboard that"
            " wrote it"
        )
    adapter, names = _reader(kind)
    if not document.keys() <= names:
        unknown = ", ".join(sorted(document.keys() - names))
        raise JournalDamaged(
            f"a record {kind!r} has no {unknown} in version {VERSION}: it is damaged, or a newer"
            " callboard wrote it"
        )
    try:
        return _frozen(adapter.validate_python(document))
    except ValidationError as error:
        raise JournalDamaged(f"a record {kind!r} is damaged: {_faults(error)}") from None


def _frozen(record: Record) -> Record:
    """The record with its mappings deeply frozen, as they were when it was written."""
    if isinstance(record, LayerFact):
        return replace(record, payload=freeze(record.payload))
    if isinstance(record, ApprovalRequested):
        preview = freeze(record.approval.preview)
        return replace(record, approval=replace(record.approval, preview=preview))
    return record


@cache
def _reader(kind: str) -> tuple[TypeAdapter[Record], frozenset[str]]:
    cls = _KINDS[kind]
    return TypeAdapter(cls), frozenset([field.name for field in fields(cls)])


def _faults(error: ValidationError) -> str:
    """What is wrong and where, without the values, which may be secret."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in found[:_SHOWN]]
    more = len(found) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")
