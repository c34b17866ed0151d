"""ReActAgent: the loop, and the cooperative steps that layers override.

The loop asks `next_action` what to do, does it through one of the steps, journals what came of
it, and asks again. Read `decide.py` beside this file.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from callboard.actors.address import Address
from callboard.agent_state import AgentState
from callboard.approvals import SealedCall, Verdict
from callboard.approving import ANYBODY, ApprovalPolicy, Approver
from callboard.assembler import with_unique_ids
from callboard.budget import NO_LIMITS, Budget
from callboard.composition import check, explain, steps_of
from callboard.decide import (
    Act,
    Close,
    Finish,
    Park,
    Reason,
    Skip,
    Summarize,
    ToolExecution,
    next_action,
    rules_of,
)
from callboard.entering import Entered
from callboard.errors import ConfigurationError, ModelError
from callboard.events import LimitReached, MessageEnd, MessageStart
from callboard.hooks import Hooks, settled
from callboard.journaling.blobs import Blobs
from callboard.journaling.journal import Journal
from callboard.journaling.records import MessageAdded, Prompted, Queued, Record, Taken
from callboard.journaling.transcript import State
from callboard.messages import (
    REFUSALS,
    AssistantMessage,
    ConversationMessage,
    Observation,
    ToolCall,
    UserMessage,
)
from callboard.model import Model, ModelRequest, ModelSettings, Purpose
from callboard.queues import QueueMode, SteeringPolicy
from callboard.reasoning import Draft, Reasoning
from callboard.replies import Outcome, Prompt, Reply, RunEnds
from callboard.requests import Requests, SystemPrompt
from callboard.seated import Seated
from callboard.summary import stand_in, summary_request, tool_free
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Tool

_DEFAULT_SETTINGS = ModelSettings()
_NO_HOOKS = Hooks()
_ANSWER = Purpose.ANSWER  # members of an enum take 0.15 us to look up
_PROCESS_KEY = secrets.token_bytes(32)


class ReActAgent(Seated):
    """An agent that reasons and acts.

    `max_iters` is how many turns (one model call and its tool calls) an attempt may take before
    it is summarized; it starts again with each run. `digest_key` makes the digests of arguments
    that stand in approvals and journals. By default it is the journal's (SqliteJournal keeps one),
    or fresh in each process. `blobs` is a store for media above 256 KiB and for the whole of texts
    that are cut; without one, media stay in the records. `approver` is asked in place where a call
    needs a human (without one the run parks), by the rules `approvals`.

    To change how an agent works, inherit and override a step: `reply`, `_reasoning`,
    `_deciding`, `_acting`, `_summarizing`, `_committing`, `_tools`. Call `super()` in it, keep
    nothing of a single call on `self`. The class statement is checked.
    """

    def __init__(
        self,
        *,
        name: str = "agent",
        address: Address | None = None,
        model: Model,
        system_prompt: SystemPrompt = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        max_iters: int | None = None,
        settings: ModelSettings = _DEFAULT_SETTINGS,
        deps: Any = None,
        tool_execution: ToolExecution = ToolExecution.PARALLEL,
        max_concurrency: int | None = None,
        queue_mode: QueueMode = QueueMode.ONE_AT_A_TIME,
        steering_policy: SteeringPolicy = SteeringPolicy.AFTER_BATCH,
        budget: Budget = NO_LIMITS,
        hooks: Hooks = _NO_HOOKS,
        journal: Journal | None = None,
        messages: Sequence[ConversationMessage] = (),
        digest_key: bytes | None = None,
        blobs: Blobs | None = None,
        approver: Approver | None = None,
        approvals: ApprovalPolicy = ANYBODY,
    ) -> None:
        if not hasattr(model, "stream"):
            raise ConfigurationError(
                f"model={model!r} is not a model; a name becomes one with "
                "callboard_providers.models.resolve_model(name)"
            )
        if callable(tools):
            raise ConfigurationError(f"tools={tools!r} is one tool; give a list: tools=[...]")
        super().__init__(
            name=name,
            address=address,
            journal=journal,
            messages=messages,
            blobs=blobs,
            approver=approver,
            approvals=approvals,
        )
        toolbox = Toolbox(tools)
        self._requests = Requests(
            self._conversation,
            model=model,
            system_prompt=system_prompt,
            settings=settings,
            tools=tuple(toolbox.values()),
            hooks=hooks,
            blobs=blobs,
        )
        self._rules = rules_of(
            max_iters=max_iters,
            budget=budget,
            tool_execution=tool_execution,
            queue_mode=queue_mode,
            steering_policy=steering_policy,
        )
        self._hooks = hooks
        self._is_supplied = hooks.steering_supplier is not None
        self.deps = deps
        self._reasoner = Reasoning(self._conversation, self._watchers, costs=budget.costs())
        self._calls = self._tool_run(
            agent=self,
            conversation=self._conversation,
            watchers=self._watchers,
            steps=steps_of(self, ReActAgent),
            rules=self._rules,
            hooks=hooks,
            toolbox=toolbox,
            asking=approvals,
            deps=deps,
            digest_key=digest_key or getattr(journal, "digest_key", None) or _PROCESS_KEY,
            max_concurrency=max_concurrency,
            keeper=self._keeper,
        )
        self._watch_time()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        check(cls, ReActAgent)

    # -- the steps -------------------------------------------------------------------------------

    async def reply(self, prompt: Prompt) -> Reply:
        """Step: one attempt at a prompt. Outer loops (reflexion, plan) call super() again, with
        prompts whose ids are made from this one's; entering twice with one id asks once.

        Parking and interrupts pass through it as exceptions of the StopRun family.
        """
        if prompt.id not in self._conversation.state.prompts:
            await self._take_prompt(prompt)
        else:
            self._offer()  # after a restart, open calls are looked up among these
        if self._hooks.prepare_next_turn is None:
            return await self._taken_turns()
        async with Entered(self._warn, outer=self._entered) as self._requests.entered:
            await self._requests.entered.add(self._requests.model)  # as an earlier attempt left it
            return await self._taken_turns()

    async def _taken_turns(self) -> Reply:
        """Do what there is to do until there is a reply."""
        while True:
            match next_action(self._conversation.state, self._rules):
                case Reason(take=take):
                    limit = await self._reason(take)
                    if limit is not None:
                        return await self._summarized(limit, Outcome.BUDGET)
                case Act(calls=calls):
                    await self._calls.act(calls)
                    if self._purse is not None:
                        await self._purse.write_late()
                    self._end_turn_when_closed()
                case Skip(calls=calls):
                    await self._calls.skip(calls)
                    await self._stop_below()
                    self._end_turn_when_closed()
                case Finish():
                    if not await self._supplied("follow_up") and not self._has_news():
                        return self._finished()
                case Summarize(limit=limit, outcome=outcome):
                    return await self._summarized(limit, outcome)
                case Park():
                    await self._wait_for_humans()
                    self._end_turn_when_closed()
                case Close():
                    raise RunEnds(Outcome.INTERRUPTED)

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        """Step: one model call. A layer may change the request (a changed copy; its model may be
        wrapped), call super() again in a bounded loop, or change the message that comes back.
        """
        return await self._reasoner.respond(request)

    async def _deciding(self, call: ToolCall) -> Verdict:
        """Step: may this call run, and as what? Its arguments fit the tool's schema.

        A rewriter passes `call.with_arguments(...)` to super(). A guard judges what comes back,
        which is exactly what will run, and may turn it into Deny or Ask. Contract: if it raises,
        the call is denied. Decisions are made one after another, before anything of the batch
        runs.
        """
        return self._calls.decider.seal(call)

    async def _acting(self, call: SealedCall) -> Observation:
        """Step: run one call, exactly as it was decided. The executions of a batch overlap.

        A layer may refuse (return an Observation that says why), try an idempotent tool again
        (`super()._acting(call.again())`), or change what comes back. Contract: if it raises
        after the tool ran, the model reads both; the tool is not run again.
        """
        return await self._calls.performer.perform(call)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        """Step: the answer at a limit. The request has no tools."""
        return await self._reasoner.respond(request)

    def _tools(self) -> Sequence[Tool]:
        """Step: the tools that the next request offers. Only these can be called in its turn."""
        return self._requests.own_tools

    # -- the loop's verbs ------------------------------------------------------------------------

    async def _take_prompt(self, prompt: Prompt) -> None:
        prompt = await self._kept(prompt)  # a layer may have made it
        added: list[UserMessage] = []

        def build(state: State) -> list[Record]:  # a message may be withdrawn meanwhile
            earlier = state.queues.left_over() if prompt.messages else ()
            taken = [Taken(one.item_id, UserMessage(content=one.content)) for one in earlier]
            said = state.not_waiting(prompt.messages)
            added.extend([*[one.message for one in taken], *said])
            return [*taken, Prompted(prompt.id, said)]

        await self._conversation.commit_built(build)
        if not self._turn_is_open:
            self._begin_turn()
        for message in added:
            self._tell_message(message)

    async def _reason(self, take: tuple[Queued, ...]) -> str | None:
        """Take a turn, unless steering is supplied now. Returns the limit that cut it off."""
        if not take and self._is_supplied and await self._supplied("steering"):
            return None
        if self._calls.performer.left_s is not None:
            return await self._take_bounded_turn(take)
        await self._take_turn(take)
        return None

    async def _take_turn(self, take: tuple[Queued, ...]) -> None:
        """Take waiting messages in, ask the model, and journal what it says."""
        if not self._turn_is_open:
            if self._turn and self._hooks.prepare_next_turn is not None:
                await self._requests.prepare()
            self._begin_turn()
        for item in take:
            await self._take(item)
        if self._conversation.state.unanswered:  # not all of it was withdrawn
            self._offer()
            await self._add_answer(await self._requests.next(), _ANSWER)
        self._end_turn_when_closed()

    async def _take(self, item: Queued) -> None:
        message = UserMessage(content=item.content)
        if await self._conversation.commit_built(
            lambda state: (Taken(item.item_id, message),) if state.queues.find(item.item_id) else ()
        ):
            self._tell_message(message)

    def _has_news(self) -> bool:
        """Whether a message or an interrupt has come while the supplier was asked."""
        state = self._conversation.state
        return state.interrupted or any([item.wake for item in state.queues.items()])

    async def _supplied(self, lane: Literal["steering", "follow_up"]) -> bool:
        """Ask the supplier of this lane; what it gives is queued like any other message."""
        supplier = getattr(self._hooks, f"{lane}_supplier")
        given = await settled(supplier()) if supplier is not None else None
        items = [await self._item(lane, message, wake=True) for message in given or ()]
        if items:  # in one commit, which a cancel waits for: the supplier has them no more
            await self._conversation.commit(*items)
        return bool(items)

    async def _add_answer(self, request: ModelRequest, purpose: Purpose) -> AssistantMessage:
        draft = self._reasoner.draft = Draft()
        self._watchers.tell(MessageStart, draft.id, "assistant")
        added: AssistantMessage | None = None
        try:
            if purpose is _ANSWER:
                message = await self._reasoning(request)
            else:
                message = tool_free(await self._summarizing(request))
            if type(cast("object", message)) is not AssistantMessage:  # an untyped layer's work
                raise TypeError(f"a layer returned {message!r} from a model step, not a message")
            if message is not draft.answer:  # a layer may have made it
                message = with_unique_ids(message, self._conversation.state.call_ids)
            joined = self._calls.joins.at_answer(message, request.model)
            await self._conversation.commit(MessageAdded(message, purpose), with_next=joined)
            added = message
        finally:
            self._watchers.tell(MessageEnd, draft.id, added)
        return message

    def _offer(self) -> None:
        """Look up calls among the tools that the layers want to offer now."""
        toolbox = self._requests.offer(self._tools())
        if toolbox is not None:
            self._calls.decider.toolbox = toolbox

    async def _summarized(self, limit: str, outcome: Outcome) -> Reply:
        """Answer at a limit: with one model call, or else with what the results say."""
        self._watchers.tell(LimitReached, limit)
        try:
            self._offer()
            request = summary_request(await self._requests.next(), limit)
            message = await self._add_answer(request, Purpose.SUMMARY)
        except (ModelError, RunEnds) as problem:
            text = stand_in(self._conversation.state, limit)
            reply = self._replied(outcome, text, limit=limit)
            return replace(reply, summary_failed=True, error=str(problem))
        return self._replied(outcome, message.text, message=message, limit=limit)

    def _finished(self) -> Reply:
        state = self._conversation.state
        last = state.messages[-1] if state.messages else None
        said = last if isinstance(last, AssistantMessage) else None
        if said is None and state.round is not None and state.round.message.stop_reason in REFUSALS:
            said = state.round.message  # its calls were skipped
        if said is not None:
            refused = said.stop_reason in REFUSALS
            outcome = Outcome.REFUSED if refused else Outcome.FINISHED
            return self._replied(outcome, said.text, message=said)
        # the results of the last round end the run
        return self._replied(Outcome.FINISHED, last.text if last is not None else "")

    def _replied(self, outcome: Outcome, text: str, **more: Any) -> Reply:
        run = self._conversation.state.run
        return Reply(run_id=run.run_id if run else "", outcome=outcome, text=text, **more)

    # -- what the loop works with ----------------------------------------------------------------

    def _end_turn_when_closed(self) -> None:
        round = self._conversation.state.round
        if round is None or not round.open:
            self._end_turn()

    def _tell_message(self, message: UserMessage) -> None:
        self._watchers.tell(MessageStart, message.id, "user")
        self._watchers.tell(MessageEnd, message.id, message)

    # -- for users -------------------------------------------------------------------------------

    @property
    def state(self) -> AgentState:
        """A read-only look at the agent, which follows it."""
        return AgentState(
            self._conversation.state,
            model=self._requests.model,
            tools=self._requests.offered,
            streaming=self._interruption is not None,
        )

    async def opened(self) -> AgentState:
        """`state`, once the journal is read: what an agent holds before its first run here.

        Takes the journal over, as a run does: who wrote it before may write no more.
        """
        await self._opened()
        return self.state

    @classmethod
    def explain(cls) -> str:
        """The stack of layers as text, outermost first, with the steps that each one has."""
        return explain(cls, ReActAgent)
