"""Where on JetStream what stands, and letters and commits as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing, StoredAnswer
from callboard.actors.shards import shard_of
from callboard.errors import ConfigurationError
from callboard.journaling.record_codec import encode
from callboard_providers.engines.nats_line import token

Shard = tuple[str, int]


def place(address: Address) -> str:
    """`<kind>.<shard>.<key>`, as subjects have it."""
    kind, _, key = str(address).partition("/")
    return f"{kind}.{shard_of(address)}.{key}"


def address_of(subject: str) -> Address:
    """The address in a subject `cb.<what>.<kind>.<shard>.<key>`."""
    parts = subject.split(".")
    return Address.parse(f"{parts[2]}/{parts[4]}")


def shard_place(shard: Shard) -> str:
    return f"{str(Address(shard[0], 'x')).partition('/')[0]}.{shard[1]}"


def letter_subject(letter: Letter) -> str:
    if letter.due is not None:
        return f"cb.timer.{place(letter.to)}.{token(letter.id)}"
    return f"cb.{'ctl' if letter.control else 'in'}.{place(letter.to)}"


def packed(letter: Letter) -> dict[str, Any]:
    """A letter as JSON.

    Raises:
        ConfigurationError: its body is none.
    """
    checked(letter.body)
    return {
        "id": letter.id,
        "to": str(letter.to),
        "body": letter.body,
        "sender": None if letter.sender is None else str(letter.sender),
        "asked": letter.asked,
        "chain": [str(one) for one in letter.chain],
        "deadline": letter.deadline,
        "due": letter.due,
        "topic": letter.topic,
        "control": letter.control,
        "attempts": letter.attempts,
    }


def unpacked(document: Mapping[str, Any], *, attempts: int = 0, suspect: bool = False) -> Letter:
    sender = document["sender"]
    return Letter(
        document["id"],
        Address.parse(document["to"]),
        document["body"],
        None if sender is None else Address.parse(sender),
        document["asked"],
        tuple([Address.parse(one) for one in document["chain"]]),
        document["deadline"],
        document["due"],
        document["topic"],
        document["control"],
        attempts or document["attempts"],
        suspect,
    )


def packed_commit(commit: Commit, *, length: int, standing: Standing) -> dict[str, Any]:
    """A commit as one message of the journal: what it sends and answers stands in it, so that
    whoever takes the address over can finish what its writer did not.
    """
    return {
        "n": length,
        "records": [encode(record).decode("utf-8", "surrogatepass") for record in commit.records],
        "done": list(commit.done),
        "sends": [packed(letter) for letter in commit.sends],
        "answers": [[one.letter_id, checked(one.body), one.final] for one in commit.answers],
        "standing": str(standing),
    }


def checked(value: Any) -> Any:
    """The value, if it is JSON.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        text = f"an engine keeps JSON, and {value!r:.100} is none: {error}"
        raise ConfigurationError(text) from None
    return value


def answer_of(letter_id: str, document: Mapping[str, Any]) -> StoredAnswer:
    return StoredAnswer(letter_id, document["body"], document["final"])
