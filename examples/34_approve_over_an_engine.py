"""A team waits for a human; its process ends, another one approves, and the team goes on.

Last line: wednesday: finished: The invoice is paid.
"""

import os
import signal
import subprocess
import sys

import anyio

from callboard import ActorSystem, Proceed, ReActAgent, ToolCall, Verdict
from callboard.actors.system import Seat
from callboard.testing import ScriptedModel, ScriptItem, call

ENGINE = "sqlite:team.db"
APPROVALS = (sys.executable, "-m", "callboard_console", "approvals")  # callboard approvals ...
SCRIPTS: dict[str, list[ScriptItem]] = {
    "monday": [call("pay", amount=120)],
    "wednesday": ["The invoice is paid."],
}


class PaymentGuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("it costs money") if isinstance(verdict, Proceed) else verdict


def pay(amount: int) -> str:
    """Pay an invoice."""
    print(f"  (paid {amount})")
    return f"paid {amount}"


def make_clerk(seat: Seat) -> ReActAgent:
    model = ScriptedModel(SCRIPTS[sys.argv[1]])
    return PaymentGuardMixin(address=seat.address, model=model, tools=[pay], journal=seat.journal)


async def script() -> None:
    async with ActorSystem(ENGINE) as system:
        system.register("clerk", make_clerk)
        reply = await system.ref("clerk/claire").ask("Pay the invoice of 120.", id="invoice-120")
        if sys.argv[1] == "monday":
            print(f"monday: {reply.text}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        reply = await system.result("invoice-120")
        print(f"wednesday: {reply.outcome}: {reply.text}")


if sys.argv[1:]:
    anyio.run(script)
else:
    subprocess.run([sys.executable, __file__, "monday"], check=False)
    listed = subprocess.check_output([*APPROVALS, "list", ENGINE], text=True)
    subprocess.run([*APPROVALS, "approve", ENGINE, listed.split()[0], "--by", "alice"], check=True)
    subprocess.run([sys.executable, __file__, "wednesday"], check=True)
