"""What an agent's requests are made of, and the hook that changes it from turn to turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from callboard.entering import Entered
from callboard.hooks import Hooks, NextTurn, settled, transformed
from callboard.journaling.blobs import Blobs
from callboard.journaling.conversation import Conversation
from callboard.journaling.message_view import MessageView
from callboard.journaling.records import LayerFact
from callboard.json_text import sendable
from callboard.messages import ConversationMessage
from callboard.model import Model, ModelRequest, ModelSettings, ToolOffer
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Tool

SystemPrompt = str | Callable[[], str | Awaitable[str]]


class Requests:
    """Makes the requests of one agent. What stands in it is what the next one has.

    `own_tools` are the agent's, `offered` those of the last request, with what layers added.
    """

    __slots__ = (
        "_blobs",
        "_conversation",
        "_hooks",
        "_offer",
        "entered",
        "model",
        "offered",
        "own_tools",
        "settings",
        "system_prompt",
    )

    def __init__(
        self,
        conversation: Conversation,
        *,
        model: Model,
        system_prompt: SystemPrompt,
        settings: ModelSettings,
        tools: tuple[Tool, ...],
        hooks: Hooks,
        blobs: Blobs | None,
    ) -> None:
        self._conversation = conversation
        self._hooks = hooks
        self._blobs = blobs
        self.model = model
        self.system_prompt = system_prompt
        self.settings = settings
        self.own_tools = self.offered = tools
        self._offer = _offer_of(tools)
        self.entered: Entered | None = None  # models that the hook switched in, for one attempt

    def offer(self, tools: Sequence[Tool]) -> Toolbox | None:
        """Offer these tools from now on. Returns them to be looked up, if they are others."""
        if tools is self.offered or tuple(tools) == self.offered:
            return None
        toolbox = Toolbox(tools)
        self.offered = tuple(toolbox.values())
        self._offer = _offer_of(self.offered)
        return toolbox

    async def next(self) -> ModelRequest:
        """The request that asks for an answer to the conversation as it is now."""
        messages: Sequence[ConversationMessage] = MessageView(self._conversation.state.messages)
        if self._hooks.transform_context is not None:
            messages = await transformed(self._hooks.transform_context, messages)
        system = self.system_prompt
        if not isinstance(system, str):
            system = await settled(system())
        return ModelRequest(
            model=self.model,
            messages=messages,
            system=sendable(system),
            offer=self._offer,
            settings=self.settings,
            blobs=self._blobs,
        )

    async def prepare(self) -> None:
        """Have the hook change what the next requests have, if it wants to."""
        assert self._hooks.prepare_next_turn is not None
        change = await settled(self._hooks.prepare_next_turn(self._conversation.state))
        if change is None:
            return
        await self._apply(change)
        changed = [name for name in NextTurn.__slots__ if getattr(change, name) is not None]
        await self._conversation.commit(LayerFact("next_turn", {"changed": changed}))

    async def _apply(self, change: NextTurn) -> None:
        if change.model is not None:
            if self.entered is not None:
                await self.entered.add(change.model)
            self.model = change.model
        if change.settings is not None:
            self.settings = change.settings
        if change.system_prompt is not None:
            self.system_prompt = change.system_prompt
        if change.tools is not None:
            self.own_tools = tuple(Toolbox(change.tools).values())


def _offer_of(tools: tuple[Tool, ...]) -> ToolOffer | None:
    return ToolOffer(tools=tools) if tools else None
