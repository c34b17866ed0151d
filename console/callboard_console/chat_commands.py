"""What is told to a chat rather than to the agent: lines that begin with `/`."""

from __future__ import annotations

import getpass
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from callboard.agent import ReActAgent
from callboard.approvals import Approval, GrantScope
from callboard.replies import Reply
from callboard.resolving import fate_of
from callboard_console.ask import Wish
from callboard_console.chat_trace import ChatTrace
from callboard_console.exits import CommandError
from callboard_console.record_lines import legible
from callboard_console.session import Session, open_another


class Chatting(Protocol):
    """The chat, as a command sees it."""

    wish: Wish
    session: Session
    aside: ChatTrace

    @property
    def agent(self) -> ReActAgent: ...
    @property
    def is_busy(self) -> bool: ...
    def start(self, work: Callable[[], Awaitable[Reply]]) -> None: ...
    async def use(self, session: Session) -> None: ...
    def leave(self) -> None: ...


async def obey(chat: Chatting, line: str) -> None:
    """Do what the line says.

    Raises:
        CallboardError: it is no command, or it cannot be done now.
    """
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise CommandError(f"{name} is no command: /help (a line after a space goes to the agent)")
    chat.aside.note(line, "blue")
    await command(chat, rest.strip())


async def _help(chat: Chatting, _: str) -> None:
    """this list"""
    for name, command in COMMANDS.items():
        chat.aside.note(f"  {name:10} {command.__doc__}", "dim")
    chat.aside.note("  Ctrl-C     interrupts the agent; again, or at the prompt, leaves", "dim")
    chat.aside.note("  What you type while it works reaches it after the running step.", "dim")


async def _messages(chat: Chatting, _: str) -> None:
    """the conversation so far"""
    for message in chat.agent.messages:
        chat.aside.recall(message)
    if not chat.agent.messages:
        chat.aside.note("nothing was said yet", "dim")


async def _queue(chat: Chatting, _: str) -> None:
    """what waits to be taken in"""
    for item in chat.agent.state.queued:
        chat.aside.queued(item)
    if not chat.agent.state.queued:
        chat.aside.note("nothing waits", "dim")


async def _withdraw(chat: Chatting, rest: str) -> None:
    """[ID] takes back a line that waits, the last one without an id"""
    waiting = [item.item_id for item in chat.agent.state.queued]
    if not waiting:
        raise CommandError("nothing waits (any more)")
    item_id = waiting[-1] if not rest else _one_of(waiting, rest)
    gone = await chat.agent.withdraw(item_id)
    chat.aside.note(f"withdrawn: {item_id}" if gone else "it was taken in already", "dim")


async def _resume(chat: Chatting, _: str) -> None:
    """go on: a run that was cut off or failed, lines that wait"""
    if chat.is_busy:
        raise CommandError("it is working already")
    if not chat.agent.messages and not chat.agent.state.queued:
        raise CommandError("nothing was said yet")
    chat.start(chat.agent.resume)


async def _approve(chat: Chatting, rest: str) -> None:
    """ID lets a call run that waits for you"""
    approval_id = _asked(chat, rest)
    if await chat.agent.approve(approval_id, by=getpass.getuser()):
        _go_on(chat)
    else:
        raise CommandError(fate_of(approval_id, chat.agent.approval(approval_id)))


async def _deny(chat: Chatting, rest: str) -> None:
    """ID [REASON] refuses it; the agent reads the reason"""
    given, _, reason = rest.partition(" ")
    approval_id = _asked(chat, given)
    if await chat.agent.deny(approval_id, reason=reason.strip(), by=getpass.getuser()):
        _go_on(chat)
    else:
        raise CommandError(fate_of(approval_id, chat.agent.approval(approval_id)))


async def _always(chat: Chatting, rest: str) -> None:
    """ID lets this very call run, now and whenever it comes again in this conversation"""
    approval_id = _asked(chat, rest)
    scope = GrantScope.CONVERSATION
    if await chat.agent.approve(approval_id, by=getpass.getuser(), scope=scope):
        _go_on(chat)
    else:
        raise CommandError(fate_of(approval_id, chat.agent.approval(approval_id)))


async def _answer(chat: Chatting, rest: str) -> None:
    """ID TEXT answers a question of the agent"""
    given, _, text = rest.partition(" ")
    approval_id = _asked(chat, given)
    if await chat.agent.answer(approval_id, text.strip(), by=getpass.getuser()):
        _go_on(chat)
    else:
        raise CommandError(fate_of(approval_id, chat.agent.approval(approval_id)))


async def _grants(chat: Chatting, _: str) -> None:
    """what may run without asking, because you said so"""
    for one in chat.agent.grants:
        what = json.dumps(one.preview, ensure_ascii=False, default=str)
        chat.aside.note(legible(f"  {one.id}  {one.tool_name} {what} ({one.scope})"), "dim")
    if not chat.agent.grants:
        chat.aside.note("nothing", "dim")


async def _revoke(chat: Chatting, rest: str) -> None:
    """ID ends a grant"""
    given = [one.id for one in chat.agent.grants]
    if not given:
        raise CommandError("nothing was granted for longer")
    await chat.agent.revoke(_one_of(given, rest), by=getpass.getuser())


def answering(text: str, asked: Sequence[Approval]) -> str | None:
    """The command that a plain line stands for while something waits for an answer: y, n, always,
    or the words that a question asks for. It is about what waits longest.
    """
    if not asked:
        return None
    first = asked[0]
    if first.is_question:
        return f"/answer {first.id} {text}"
    word, _, rest = text.partition(" ")
    match word.lower():
        case "y" | "yes" if not rest:
            return f"/approve {first.id}"
        case "n" | "no" if word.lower() == "n" or not rest:  # "no idea" is not a refusal
            return f"/deny {first.id} {rest}".rstrip()
        case "a" | "always" if not rest:
            return f"/always {first.id}"
        case _:
            return None


async def _new(chat: Chatting, rest: str) -> None:
    """[NAME] begins another conversation; this one stays under its name"""
    if chat.is_busy:
        raise CommandError("it is working: interrupt it first (Ctrl-C)")
    await chat.use(open_another(chat.wish, chat.session, rest))


async def _quit(chat: Chatting, _: str) -> None:
    """leave; the conversation is kept"""
    chat.leave()


COMMANDS: dict[str, Callable[[Chatting, str], Awaitable[None]]] = {
    "/help": _help,
    "/messages": _messages,
    "/queue": _queue,
    "/withdraw": _withdraw,
    "/resume": _resume,
    "/approve": _approve,
    "/deny": _deny,
    "/always": _always,
    "/answer": _answer,
    "/grants": _grants,
    "/revoke": _revoke,
    "/new": _new,
    "/quit": _quit,
}


def _go_on(chat: Chatting) -> None:
    """Resume once everything is answered. A run that is not parked yet sees the answer itself."""
    left = chat.agent.state.approvals
    for approval in left:
        chat.aside.ask(approval)
    if not left and not chat.is_busy:
        chat.start(chat.agent.resume)


def _asked(chat: Chatting, given: str) -> str:
    asked = [approval.id for approval in chat.agent.state.approvals]
    if not asked:
        raise CommandError("nothing waits for an approval")
    if not given:
        raise CommandError(f"which one? {' '.join(asked)}")
    return _one_of(asked, given)


def _one_of(ids: Sequence[str], given: str) -> str:
    """The id that is given, whole or by its unique end."""
    found = [one for one in ids if one == given] or [one for one in ids if one.endswith(given)]
    if len(found) != 1:
        raise CommandError(f"{given!r} names {len(found) or 'none'} of: {' '.join(ids)}")
    return found[0]
