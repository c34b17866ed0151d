"""`callboard chat`: a conversation in the terminal, kept in a file and picked up again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import cast

import anyio

from callboard.agent import ReActAgent
from callboard.errors import CallboardError, MissingExtra
from callboard.messages import UserMessage
from callboard.replies import Outcome, Reply, RunFailed
from callboard.watching import Subscription
from callboard_console.ask import Wish
from callboard_console.chat_commands import answering, obey
from callboard_console.chat_trace import ChatTrace
from callboard_console.exits import Exit, code_of_error, code_of_outcome, line_of
from callboard_console.front import Front, PipeFront
from callboard_console.session import Session, open_session
from callboard_console.trace import counted

TWICE_S = 1.0  # two Ctrl-C within this leave
MOST_EVENTS = 100_000  # that may wait to be shown
GOES_ON = frozenset({Outcome.FINISHED, Outcome.STOPPED, Outcome.MAX_ITERS, Outcome.REFUSED})

Work = Callable[[], Awaitable[Reply]]


def chat(wish: Wish, name: str) -> Exit:
    """Talk until the user leaves, and say how the last run ended.

    Raises:
        CallboardError: the agent could not be made, or its session cannot be opened.
    """
    session = open_session(wish, name)
    try:
        return anyio.run(_hold, wish, session)
    except BaseExceptionGroup as group:
        raise _first(group) from group


async def _hold(wish: Wish, session: Session) -> Exit:
    return await Chat(wish, session, _front()).hold()


def _front() -> Front:
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        try:  # it takes 150 ms, which a pipe need not wait
            from callboard_console.terminal import TerminalFront
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "prompt_toolkit", extra="cli") from error
        return TerminalFront()
    return PipeFront()


class Chat:
    """Takes lines, runs the agent, shows what happens. One conversation at a time.

    A line asks the agent, or steers it while it works; one that begins with `/` is a command.
    """

    def __init__(self, wish: Wish, session: Session, front: Front) -> None:
        self.wish = wish
        self.session = session
        self.front = front
        self.aside = ChatTrace(front, aside=True)
        self._models = AsyncExitStack()
        self._group: anyio.abc.TaskGroup | None = None
        self._running = anyio.CancelScope()
        self._idle = anyio.Event()
        self._idle.set()
        self._begun = anyio.Event()
        self._interrupted_at = -TWICE_S
        self._is_leaving = False
        self._code = Exit.ANSWERED

    @property
    def agent(self) -> ReActAgent:
        return self.session.agent

    @property
    def is_busy(self) -> bool:
        """Whether the agent works."""
        return not self._idle.is_set()

    # -- from the first line to the last ---------------------------------------------------------

    async def hold(self) -> Exit:
        """Pick up what was left, then take line by line."""
        async with self._models, anyio.create_task_group() as self._group:
            self._group.start_soon(self._receive_signals)
            self._group.start_soon(self.front.edit, self.interrupted)
            await self.use(self.session)
            async for line in self.front.lines():
                if not self.front.is_live:
                    await self._idle.wait()
                if not self._is_leaving:
                    await self._take(line)
            if self.front.is_live:
                self.leave()
            await self._idle.wait()
            self._group.cancel_scope.cancel("the chat is over")
        self.session.close()
        return self._code

    async def use(self, session: Session) -> None:
        """Talk in this session from now on, and go on with what it left unfinished."""
        if session is not self.session:
            self.session.close()
        self.session = session
        await self._keep_model_open()
        state = await self.agent.opened()
        self.front.remember([m.text for m in state.messages if isinstance(m, UserMessage)])
        self.aside.header(
            f"{session.name}: {counted(len(state.messages), 'message')}",
            state.model.name,
            [tool.name for tool in state.tools],
        )
        if not session.is_kept:
            self.aside.note("this is not kept: name a function that takes journal=, or a class")
        self._tell_queue("this waits:")
        for approval in state.approvals:
            self.aside.ask(approval)
        if state.run_id is not None and not state.approvals:
            cut = ", ".join([call.name for call in state.open_calls])
            self.aside.note(f"the last run was cut off{f' in {cut}' if cut else ''}; it goes on")
            self.start(self.agent.resume)
        elif state.last_outcome in (Outcome.FAILED, Outcome.INTERRUPTED):
            self.aside.note(f"the last run ended as {state.last_outcome}; /resume goes on with it")

    async def _keep_model_open(self) -> None:
        """Between runs, too: a local model would start anew for each."""
        model = self.agent.state.model
        if hasattr(model, "__aenter__"):
            try:
                opening = cast(AbstractAsyncContextManager[object], model)
                await self._models.enter_async_context(opening)
            except Exception:  # noqa: BLE001  # the run tells of it
                pass

    async def _take(self, line: str) -> None:
        text = line.strip()
        if not text:
            return
        try:
            if line.startswith("/"):
                await obey(self, text)
            elif command := answering(text, self.agent.state.approvals):
                await obey(self, command)
            elif self.is_busy or self.agent.state.approvals:
                await self._steer(text)
            else:
                message = UserMessage.of(text)
                self.aside.said(text)
                self.start(lambda: self.agent.run(message), shown=message.id)
        except CallboardError as error:
            self.aside.note(f"error: {line_of(error)}", "red")
            if not line.startswith("/"):
                self.aside.note(f"this was not taken in: {text}", "red")

    async def _steer(self, text: str) -> None:
        item_id = await self.agent.steer(text)
        waits_for = "an approval" if self.agent.state.approvals else "the running step"
        self.aside.note(f"queued behind {waits_for}: {text}  ({item_id})", "dim")

    # -- the agent -------------------------------------------------------------------------------

    def start(self, work: Work, *, shown: str | None = None) -> None:
        """Have the agent work. `shown` is the message that is on the screen already."""
        assert self._group is not None
        self._idle, self._begun = anyio.Event(), anyio.Event()
        self._running = anyio.CancelScope()
        self._group.start_soon(self._drive, work, shown)

    async def _drive(self, work: Work, shown: str | None) -> None:
        try:
            with self._running:
                more: Work | None = work
                while more is not None:
                    more = await self._run(more, ChatTrace(self.front, shown=shown))
        finally:
            self.front.wait(None)
            self._begun.set()
            self._idle.set()

    async def _run(self, work: Work, trace: ChatTrace) -> Work | None:
        """Run and show it. What has to be done next, if there is anything."""
        trace.wait("starting")
        try:
            reply = await self._watched(work, trace)
        except CallboardError as error:
            self._code = code_of_error(error)
            trace.note(f"error: {line_of(error)}", "red")
            if isinstance(error, RunFailed):
                trace.note("/resume tries again")
            else:  # such as a journal that cannot be written
                trace.note("what you said may not be kept; /messages shows what is")
            return None
        trace.close(reply)
        self._code = code_of_outcome(reply.outcome)
        return self._follow_up(reply.outcome)

    async def _watched(self, work: Work, trace: ChatTrace) -> Reply:
        problem: CallboardError | None = None
        reply: Reply | None = None
        async with anyio.create_task_group() as group:
            with self.agent.watch(limit=MOST_EVENTS) as events:
                group.start_soon(self._show, events, trace)
                try:
                    reply = await work()
                except CallboardError as error:  # the group would wrap it
                    problem = error
        if problem is not None:
            raise problem
        assert reply is not None
        return reply

    async def _show(self, events: Subscription, trace: ChatTrace) -> None:
        async for event in events:
            self._begun.set()
            trace.show(event)
        if missed := events.missed:
            trace.note(f"{missed} events were too many to show")

    def _follow_up(self, outcome: Outcome) -> Work | None:
        """A line that came too late for the run, or an answer that came before it parked."""
        state = self.agent.state
        if outcome is Outcome.AWAITING_APPROVAL:
            return None if state.approvals else self.agent.resume
        if not state.queued:
            return None
        if outcome in GOES_ON and any(item.wake for item in state.queued):
            return self.agent.resume
        self._tell_queue(
            "this waits; /resume or another line hands it on, /withdraw takes it back:"
        )
        return None

    def _tell_queue(self, title: str) -> None:
        if self.agent.state.queued:
            self.aside.note(title)
        for item in self.agent.state.queued:
            self.aside.queued(item)

    # -- leaving ---------------------------------------------------------------------------------

    async def _receive_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                self.interrupted()

    def interrupted(self) -> None:
        """Ctrl-C: stops a run, and leaves when there is none or when it comes again at once."""
        if self._is_leaving:
            os._exit(Exit.INTERRUPTED)  # a tool does not stop; what is done is in the journal
        now = time.monotonic()
        is_second = now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        if is_second or not self.is_busy:
            self.leave()
            self._code = Exit.INTERRUPTED
        elif self._group is not None:
            self.aside.note("interrupting; Ctrl-C again leaves")
            self._group.start_soon(self._interrupt)

    async def _interrupt(self) -> None:
        await self._begun.wait()  # it may have been asked for just now
        try:
            await self.agent.interrupt()
        except CallboardError as error:
            self.aside.note(f"error: {line_of(error)}", "red")

    def leave(self) -> None:
        """Stop what runs, and take no more lines. The transcript stays as it is."""
        self._is_leaving = True
        self._running.cancel("the user leaves")
        self.front.close()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error in a group, which task groups put around it."""
    error = group.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error))
    return error
