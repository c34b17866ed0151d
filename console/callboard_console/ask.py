"""`callboard ask`: one question to an agent, with a live trace, or as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from pydantic import TypeAdapter

from callboard.agent import ReActAgent
from callboard.messages import Message, Usage
from callboard.replies import Reply, RunFailed
from callboard.tools import Tool
from callboard_console.exits import CommandError, Exit, code_of_error, code_of_outcome, line_of
from callboard_console.logs import LogLevel
from callboard_console.objects import call_factory, load_tools
from callboard_console.ready_model import ready_model
from callboard_console.trace import Screen, Trace
from callboard_mixins.step_log import StepLogMixin
from callboard_providers.tools import calculate, current_time, file_tools

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
    folder: str
    max_iters: int
    as_json: bool
    quiet: bool
    log_level: LogLevel


class LoggedAgent(StepLogMixin, ReActAgent):
    """The built-in agent when its steps are logged."""


def ask(wish: Wish) -> Exit:
    """Ask, print, and say how it ended.

    Raises:
        CallboardError: the agent could not be made. A run that failed is printed instead.
    """
    agent = make_agent(wish)
    trace = Trace(Screen(quiet=wish.as_json or wish.quiet))
    tools = [tool.name for tool in agent.state.tools]
    trace.header(wish.question, agent.state.model.name, tools)
    begun = time.monotonic()
    try:
        reply = anyio.run(partial(watch, agent, wish.question, trace))
        code, problem = code_of_outcome(reply.outcome), None
    except RunFailed as error:
        reply, code, problem = error.reply, code_of_error(error), line_of(error)
    finally:
        trace.stop_waiting()
    if problem is None:
        trace.close(reply)
    if wish.as_json:
        print(as_json(reply, problem, took_s=time.monotonic() - begun))
    elif problem is not None:
        raise CommandError(problem, code=code)
    elif wish.quiet:
        print(reply.text)
    return code


async def watch(agent: ReActAgent, question: str, trace: Trace) -> Reply:
    """Run the agent and show what happens."""
    trace.wait("starting the model")
    async with agent.stream(question) as events:
        async for event in events:
            trace.show(event)
    if events.reply is None:
        raise CommandError("the run ended without a reply", code=Exit.FAILED)
    return events.reply


def make_agent(wish: Wish) -> ReActAgent:
    """The agent that the user named, or the built-in one with its tools."""
    model = partial(ready_model, wish.model, quiet=wish.as_json or wish.quiet)
    if wish.agent is not None:
        return named_agent(wish.agent, model)
    kind = LoggedAgent if wish.log_level is LogLevel.DEBUG else ReActAgent
    return kind(
        name="assistant",
        model=model(),
        system_prompt=PROMPT,
        tools=tools_of(wish),
        max_iters=wish.max_iters,
    )


def named_agent(target: str, model: Any) -> ReActAgent:
    """The agent at `module:factory`."""
    agent = call_factory(target, model)
    if not isinstance(agent, ReActAgent):
        raise CommandError(f"--agent {target!r}: made {agent!r}, which is not a ReActAgent")
    return agent


def tools_of(wish: Wish) -> list[Tool]:
    """The built-in tools, unless they are not wanted, and those that the user named."""
    built_in = [current_time, calculate, *file_tools(wish.folder)] if wish.built_in else []
    return built_in + [tool for target in wish.tools for tool in load_tools(target)]


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
