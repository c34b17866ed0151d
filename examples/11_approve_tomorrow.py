"""A process asks and is killed; another approves; a third goes on, and exactly that call runs.

Last line: wednesday: finished: The invoice is paid.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio

from callboard import Proceed, ReActAgent, Reply, SqliteJournal, ToolCall, Verdict
from callboard.testing import ScriptedModel, call
from callboard.testing.script import ScriptItem

FILE = "clerk.db"
APPROVALS = (sys.executable, "-m", "callboard_console", "approvals")  # callboard approvals ...


class PaymentGuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("it costs money") if isinstance(verdict, Proceed) else verdict


def pay(amount: int) -> str:
    """Pay an invoice."""
    print(f"  (paid {amount})")
    return f"paid {amount}"


def go_on(*script: ScriptItem, prompt: str = "") -> Reply:
    """The clerk as any process makes it: what it knows stands in the file."""
    with SqliteJournal(FILE) as journal:
        clerk = PaymentGuardMixin(model=ScriptedModel(script), tools=[pay], journal=journal)
        return clerk.run_sync(prompt) if prompt else anyio.run(clerk.resume)


def main() -> None:
    if "monday" in sys.argv:
        reply = go_on(call("pay", amount=120), prompt="Pay the invoice of 120.")
        print(f"monday: {reply.text}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    subprocess.run([sys.executable, __file__, "monday"], check=False)
    listed = subprocess.run([*APPROVALS, "list", FILE], capture_output=True, text=True, check=True)
    print(f"tuesday: {listed.stdout.split('  ', 2)[2].strip()}", flush=True)
    approval_id = listed.stdout.split()[0]
    subprocess.run([*APPROVALS, "approve", FILE, approval_id, "--by", "alice"], check=True)
    reply = go_on("The invoice is paid.")
    print(f"wednesday: {reply.outcome}: {reply.text}")


if __name__ == "__main__":
    main()
