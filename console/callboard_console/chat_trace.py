"""The trace of a chat: as that of `ask`, with what the user said and what waits for them."""

from __future__ import annotations

import json

from callboard.approvals import Approval
from callboard.events import ApprovalAsked, Event, MessageEnd
from callboard.journaling.records import Queued
from callboard.messages import UserMessage
from callboard_console.front import Front
from callboard_console.record_lines import legible
from callboard_console.trace import Trace


class ChatTrace(Trace):
    """Shows one run. `shown` is the id of the message that is on the screen already."""

    def __init__(self, front: Front, *, shown: str | None = None, aside: bool = False) -> None:
        super().__init__(front.aside if aside else front.console)
        self._front = front
        self._shown = shown
        self._is_aside = aside

    def show(self, event: Event) -> None:
        match event:
            case MessageEnd(message=UserMessage() as message) if message.id != self._shown:
                self.said(message.text)
                self.wait("thinking")
            case MessageEnd(message=UserMessage()):
                pass
            case ApprovalAsked(approval=approval):
                self.ask(approval)
            case _:
                super().show(event)

    def ask(self, approval: Approval) -> None:
        """What a human is asked, and how they answer."""
        if approval.is_question:
            self.note(legible(f"it asks: {approval.preview.get('question', approval.reason)}"))
            for option in approval.preview.get("options", ()):
                self.note(legible(f"  - {option}"))
            self.note(f"  type the answer, or   /deny {approval.id} reason")
            return
        preview = ", ".join(
            f"{k}={json.dumps(v, ensure_ascii=False, default=str)}"
            for k, v in approval.preview.items()
        )
        self.note(legible(f"may it run {approval.tool_name}({preview})? {approval.reason}"))
        self.note("  y   or   n reason   or   always (this very call, in this conversation)")
        self.note(f"  /approve {approval.id}   or   /deny {approval.id} reason", "dim")

    def queued(self, item: Queued) -> None:
        """A line that waits."""
        text = " ".join([getattr(block, "text", "...") for block in item.content])
        self.note(f"  {item.item_id}  {text}", "dim")

    def wait(self, what: str) -> None:
        if not self._is_aside:
            self._front.wait(what)

    def stop_waiting(self) -> None:
        if not self._is_aside:
            self._front.wait(None)
