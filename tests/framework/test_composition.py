"""The laws that a class statement of layers must satisfy: refused, with the remedy in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Deny, SealedCall, Verdict
from callboard.errors import CompositionError
from callboard.messages import Observation, ToolCall
from callboard.testing import ScriptedModel
from tests.framework.kit import echo


def wrong_parameter_name() -> type:
    class Layer(ReActAgent):
        async def _acting(  # pyright: ignore[reportIncompatibleMethodOverride]  # what is tested
            self, sealed: SealedCall
        ) -> Observation:
            return await super()._acting(sealed)

    return Layer


def wrong_parameter_kind() -> type:
    class Layer(ReActAgent):
        async def _acting(self, call: SealedCall, *extra: Any) -> Observation:
            return await super()._acting(call)

    return Layer


def not_async() -> type:
    class Layer(ReActAgent):
        def _acting(self, call: SealedCall) -> Any:
            return super()._acting(call)

    return Layer


def async_committing() -> type:
    class Layer(ReActAgent):
        async def _committing(self, record: Any) -> Any:  # type: ignore[override]
            return super()._committing(record)

    return Layer


def no_super() -> type:
    class Layer(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            return Observation.of("cached")

    return Layer


def another_steps_super() -> type:
    class Layer(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            await super()._deciding(call.call)
            return Observation.of("no")

    return Layer


def shared_list() -> type:
    class Layer(ReActAgent):
        seen: list[str] = []  # noqa: RUF012

    return Layer


def positional_init() -> type:
    class Layer(ReActAgent):
        def __init__(self, limit: int, **rest: Any) -> None:
            super().__init__(**rest)

    return Layer


def init_without_rest() -> type:
    class Layer(ReActAgent):
        def __init__(self, *, limit: int) -> None:
            super().__init__(model=ScriptedModel())

    return Layer


def init_without_super() -> type:
    class Layer(ReActAgent):
        def __init__(self, *, limit: int, **rest: Any) -> None:
            self.limit = limit

    return Layer


def foreign_private_name() -> type:
    class SpellMixin(ReActAgent):
        def __init__(self, **rest: Any) -> None:
            super().__init__(**rest)
            self._lock = 1

    return SpellMixin


def step_is_no_method() -> type:
    class Layer(ReActAgent):
        _acting = staticmethod(echo)  # type: ignore[assignment]

    return Layer


def step_is_none() -> type:
    class Layer(ReActAgent):
        _acting = None  # type: ignore[assignment]

    return Layer


def bare_mixin_behind_the_agent() -> type:
    class Guard:
        async def _deciding(self, call: ToolCall) -> Verdict:
            return Deny("no")

    class Guarded(ReActAgent, Guard): ...  # nobody would ever call the guard

    return Guarded


def unchecked_heirs() -> type:
    class Layer(ReActAgent):
        def __init_subclass__(cls, **rest: Any) -> None:
            pass

    return Layer


def order_is_no_tuple() -> type:
    class Layer(ReActAgent):
        goes_outside = ReActAgent

    return Layer


@pytest.mark.parametrize(
    ("statement", "told", "remedy"),
    [
        (step_is_none, "_acting is a NoneType", "def _acting"),
        (bare_mixin_behind_the_agent, "Guard has the step _deciding", "class Guard(ReActAgent)"),
        (unchecked_heirs, "does not call super()", "super().__init_subclass__(**rest)"),
        (order_is_no_tuple, "goes_outside is", "tuple of classes"),
        (wrong_parameter_name, "_acting(self, sealed)", "Write _acting(self, call)"),
        (wrong_parameter_kind, "_acting(self, call, *extra)", "Write _acting(self, call)"),
        (not_async, "_acting must be", "Write 'async def _acting'"),
        (async_committing, "_committing must be", "Write 'def _committing'"),
        (no_super, "does not call super()._acting", "@replaces"),
        (another_steps_super, "does not call super()._acting", "@replaces"),
        (shared_list, "attribute seen is a list", "tuple"),
        (positional_init, "keywords only", "super().__init__(**rest)"),
        (init_without_rest, "keywords only", "**rest"),
        (init_without_super, "does not call super().__init__", "Call it first"),
        (foreign_private_name, "self._lock", "_spell_"),
        (step_is_no_method, "_acting is a staticmethod", "def _acting"),
    ],
)
def test_a_broken_law_is_refused_with_the_remedy(
    statement: Callable[[], type], told: str, remedy: str
) -> None:
    with pytest.raises(CompositionError) as refusal:
        statement()
    assert told in str(refusal.value)
    assert remedy in str(refusal.value)
    assert isinstance(refusal.value, TypeError)


class OneMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


class TwoMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


class OuterMixin(ReActAgent):
    goes_outside = (OneMixin,)

    async def _deciding(self, call: ToolCall) -> Verdict:
        return await super()._deciding(call)


def test_a_declared_order_is_kept_or_refused_by_name() -> None:
    class Fine(OuterMixin, OneMixin): ...

    with pytest.raises(CompositionError, match="Put OuterMixin before OneMixin"):

        class _Wrong(OneMixin, OuterMixin): ...  # pyright: ignore[reportUnusedClass]  # refused

    assert issubclass(Fine, OneMixin)


def test_a_declared_order_holds_for_heirs_and_without_the_other() -> None:
    class Heir(OneMixin): ...

    class Alone(OuterMixin): ...

    with pytest.raises(CompositionError, match="OuterMixin must go outside OneMixin"):

        class _Wrong(Heir, OuterMixin): ...  # pyright: ignore[reportUnusedClass]  # refused

    assert Alone(model=ScriptedModel()).name == "agent"


def test_python_refuses_the_agent_in_front_of_its_layers() -> None:
    with pytest.raises(TypeError, match="MRO|method resolution"):

        class Wrong(ReActAgent, OneMixin): ...  # type: ignore[misc]  # what is tested


def test_a_misspelt_keyword_is_a_type_error_that_names_it() -> None:
    class Both(OneMixin, TwoMixin): ...

    with pytest.raises(TypeError, match="max_iterations"):
        Both(model=ScriptedModel(), max_iterations=3)  # type: ignore[call-arg]


def test_explain_shows_the_stack_and_its_steps() -> None:
    class Stack(OuterMixin, OneMixin): ...

    lines = Stack.explain().splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["OuterMixin", "OneMixin", "ReActAgent"]
    assert lines[1].split()[1:] == ["_deciding"]
    assert lines[2].split()[1:] == ["_acting"]
