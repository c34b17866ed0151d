"""A conversation that goes from one model to another: ids and signatures that only one can read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard_providers.models.chat_messages import ChatMessages
from callboard_providers.models.hand_over import HandOver, IdShape, wire_ids

FOREIGN = "call_1|fc_1"


def round_of(id: str, *, model: str | None = "other") -> tuple[ConversationMessage, ...]:
    answer = AssistantMessage(content=(ToolCall(id=id, name="add"),), model=model)
    return (UserMessage.of("go"), answer, ToolResultMessage(call_id=id, tool_name="add"))


def call_ids(messages: list[dict[str, object]] | object) -> list[str]:
    """The ids of calls and results on the wire, in order."""
    return re.findall(r"'(?:id|tool_call_id)': '([^']*)'", repr(messages))


def test_pi_66_a_foreign_id_is_rewritten_in_call_and_result_alike() -> None:
    call, result = call_ids(ChatMessages(model="mine").wire(round_of(FOREIGN)))
    assert call == result != FOREIGN
    assert IdShape().fits(call)


def test_pi_66_ids_of_the_same_model_are_kept() -> None:
    sent = ChatMessages(model="mine").wire(round_of(FOREIGN, model="mine"))
    assert call_ids(sent) == [FOREIGN, FOREIGN]


def test_pi_66_a_foreign_id_that_fits_is_kept() -> None:
    assert call_ids(ChatMessages(model="mine").wire(round_of("call_1"))) == ["call_1", "call_1"]


def test_pi_66_a_message_of_unknown_origin_counts_as_foreign() -> None:
    assert FOREIGN not in call_ids(ChatMessages(model="mine").wire(round_of(FOREIGN, model=None)))


def test_pi_66_nothing_stored_is_changed_and_nothing_is_made_twice() -> None:
    history = round_of(FOREIGN)
    hand_over = HandOver("mine")
    first, second = hand_over.safe(history), hand_over.safe(history)
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert [m.id for m in first] == [m.id for m in history]
    assert isinstance(history[2], ToolResultMessage)
    assert history[2].call_id == FOREIGN


def test_a_conversation_without_anything_foreign_is_passed_on_as_it_is() -> None:
    history = round_of("call_1")
    assert HandOver("mine").safe(history) is history


def test_an_id_that_is_native_too_is_kept() -> None:
    calls = [round_of(FOREIGN)[1], round_of(FOREIGN, model="mine")[1]]
    assert wire_ids(calls, model="mine") == {}


def test_an_id_that_is_too_long_is_foreign_to_a_strict_provider() -> None:
    assert len(wire_ids(round_of("x" * 450), model="mine")["x" * 450]) == 40


def test_a_provider_of_nine_letters_gets_nine_letters() -> None:
    shape = IdShape(characters="A-Za-z0-9", longest=9)
    (new,) = wire_ids(round_of("call_1"), model="mistral", shape=shape).values()
    assert re.fullmatch("[A-Za-z0-9]{9}", new)


IDS = st.text("ab|:_", min_size=1, max_size=4)


@given(st.lists(st.tuples(IDS, st.booleans()), unique_by=lambda it: it[0]), st.integers(1, 2))
def test_rewritten_ids_fit_and_are_one_to_one(ids: list[tuple[str, bool]], longest: int) -> None:
    """Also where the shape leaves few ids to choose from, and beside native ids of any shape."""
    shape = IdShape(characters="0-9a-f", longest=longest)
    some = ids[:8]  # sixteen ids have one digit
    calls = [round_of(id, model="mine" if own else "other")[1] for id, own in some]
    made = wire_ids(calls, model="mine", shape=shape)
    sent = [made.get(id, id) for id, _ in some]
    assert len(set(sent)) == len(sent)
    assert all(id == new for (id, own), new in zip(some, sent, strict=True) if own)
    assert all(shape.fits(new) for (_, own), new in zip(some, sent, strict=True) if not own)


def test_thk_01_the_signature_of_another_model_is_dropped_and_the_words_are_kept() -> None:
    thought = ThinkingBlock(text="hm", signature="AAABBB")
    (safe,) = HandOver("mine").safe([AssistantMessage(content=(thought,), model="other")])
    assert safe.content == (ThinkingBlock(text="hm"),)


def test_thk_01_the_own_signature_goes_back_byte_for_byte() -> None:
    own = AssistantMessage(content=(ThinkingBlock(text="hm", signature="AAABBB"),), model="mine")
    assert HandOver("mine").safe([own]) == [own]


def test_encrypted_thinking_of_another_model_goes() -> None:
    hidden = ThinkingBlock(redacted="opaque")
    (safe,) = HandOver("mine").safe([AssistantMessage(content=(hidden,), model="other")])
    assert safe.content == ()
