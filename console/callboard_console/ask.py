"""`callboard ask`: one question to an agent, with a live trace, or as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import anyio
import structlog
from pydantic import TypeAdapter

from callboard.agent import ReActAgent
from callboard.journaling.journal import Journal
from callboard.messages import Message, Usage
from callboard.replies import Reply, RunFailed
from callboard.tooling.tools import Tool
from callboard_console.exits import CommandError, Exit, code_of_error, code_of_outcome, line_of
from callboard_console.logs import LogLevel
from callboard_console.objects import call_factory, load_object, load_tools, takes
from callboard_console.ready_model import ready_model
from callboard_console.trace import Screen, Trace
from callboard_mixins.step_log import StepLogMixin
from callboard_providers.tools import (
    calculate,
    current_time,
    editing_tools,
    file_tools,
    shell_tool,
)

QUESTION = "What year is it in Tokyo, and how many years ago was the moon landing of 1969?"
PROMPT = (
    "You answer questions with the help of tools, one step at a time: first look up what you do "
    "not know, then calculate with the numbers that you found."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for on the command line."""

    question: str
    model: str | None
    agent: str | None
    tools: Sequence[str]
    built_in: bool
    folder: str | None
    may_edit: bool
    may_run: bool
    max_iters: int | None
    as_json: bool
    quiet: bool
    log_level: LogLevel


def read_question() -> str:
    """The question as it comes on standard input, undecodable bytes replaced.

    Raises:
        CommandError: there is nothing on it.
    """
    text = sys.stdin.buffer.read().decode("utf-8", errors="replace").strip()
    if not text:
        raise CommandError("no question came on standard input: pipe one in, or write it out")
    return text


def ask(wish: Wish) -> Exit:
    """Ask, print, and say how it ended.

    Raises:
        CallboardError: the agent could not be made, or its run failed.
    """
    agent = make_agent(wish)
    trace = Trace(Screen(quiet=wish.as_json or wish.quiet))
    tools = [tool.name for tool in agent.state.tools]
    trace.header(wish.question, agent.state.model.name, tools)
    begun = time.monotonic()
    try:
        reply = anyio.run(partial(watch, agent, wish.question, trace))
    except RunFailed as error:
        if not wish.as_json:
            raise
        print(as_json(error.reply, line_of(error), took_s=time.monotonic() - begun))
        return code_of_error(error)
    finally:
        trace.stop_waiting()
    trace.close(reply)
    if wish.as_json:
        print(as_json(reply, None, took_s=time.monotonic() - begun))
    elif wish.quiet:
        print(reply.text)
    return code_of_outcome(reply.outcome)


async def watch(agent: ReActAgent, question: str, trace: Trace) -> Reply:
    """Run the agent and show what happens."""
    trace.wait("starting the model")
    async with agent.stream(question) as events:
        async for event in events:
            trace.show(event)
    if events.reply is None:
        raise CommandError("the run ended without a reply", code=Exit.FAILED)
    return events.reply


def make_agent(wish: Wish, journal: Journal | None = None) -> ReActAgent:
    """The agent that the user named, or the built-in one with its tools.

    An agent that the user named has the journal only if its factory takes `journal=`.
    """
    model = partial(ready_model, wish.model, quiet=wish.as_json or wish.quiet)
    is_logged = wish.log_level is LogLevel.DEBUG
    if wish.agent is not None:
        offered: dict[str, Callable[[], Any]] = {"model": model}
        if journal is not None:
            offered["journal"] = lambda: journal
        if wish.max_iters is not None:
            offered["max_iters"] = lambda: wish.max_iters
        wanted = {"model": wish.model, "max_iters": wish.max_iters}
        return named_agent(wish.agent, offered, wanted=wanted, is_logged=is_logged)
    kind = logged(ReActAgent) if is_logged else ReActAgent
    return kind(
        name="assistant",
        model=model(),
        system_prompt=PROMPT,
        tools=tools_of(wish),
        max_iters=wish.max_iters,
        journal=journal,
    )


def named_agent(
    target: str,
    offered: Mapping[str, Callable[[], Any]],
    *,
    wanted: Mapping[str, object],
    is_logged: bool,
) -> ReActAgent:
    """The agent at `module:factory`: a function that makes one, a class, or the agent itself.

    Raises:
        CommandError: there is none, or it does not take what was wanted by an option.
    """
    found = load_object(target, option="agent")
    for name, value in wanted.items():
        if value is not None and not (callable(found) and takes(found, name)):
            option = name.replace("_", "-")
            raise CommandError(
                f"--{option} {value}: the agent {target!r} takes no {name}=; leave out --{option}, "
                f"or name a factory that takes {name}="
            )
    maker = logged(found) if is_logged and is_agent_class(found) else found
    agent = call_factory(maker, target, offered) if callable(maker) else maker
    if not isinstance(agent, ReActAgent):
        raise CommandError(f"agent {target!r}: made {agent!r}, which is not a ReActAgent")
    if is_logged and not isinstance(agent, StepLogMixin):
        remedy = "put StepLogMixin before ReActAgent in its class, or name the class"
        structlog.get_logger("callboard").warning("its steps are not logged", remedy=remedy)
    return agent


def is_agent_class(found: object) -> TypeGuard[type[ReActAgent]]:
    """Whether this is a class of agents."""
    return isinstance(found, type) and issubclass(found, ReActAgent)


def logged(kind: type[ReActAgent]) -> type[ReActAgent]:
    """The same kind of agent with its steps logged."""
    if issubclass(kind, StepLogMixin):
        return kind
    return type(f"Logged{kind.__name__}", (StepLogMixin, kind), {})


def tools_of(wish: Wish) -> list[Tool]:
    """The built-in tools, unless they are not wanted, those that the user let it have, and those
    that the user named. A shell there is only in a sandbox.
    """
    folder = wish.folder or "."
    offered: list[Tool] = []
    if wish.built_in:
        offered += [current_time, calculate, *file_tools(folder)]
    if wish.may_edit:
        offered += editing_tools(folder)
    if wish.may_run:
        offered.append(shell_tool(folder, sandbox="bubblewrap"))
    return offered + [tool for target in wish.tools for tool in load_tools(target)]


def as_json(reply: Reply, problem: str | None, *, took_s: float) -> str:
    """The reply as one JSON object."""
    messages = TypeAdapter(list[Message]).dump_python(list(reply.messages), mode="json")
    found = {
        "outcome": str(reply.outcome),
        "text": reply.text,
        "run_id": reply.run_id,
        "limit": reply.limit,
        "error": problem,
        "pending": [approval.id for approval in reply.pending],
        "usage": TypeAdapter(Usage).dump_python(reply.usage, mode="json"),
        "seconds": round(took_s, 3),
        "messages": messages,
    }
    return json.dumps(found, ensure_ascii=False)
