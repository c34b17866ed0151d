"""What the tests of the audit share: an audited agent, keys, and a trail of two agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from callboard import Deny, Proceed, ReActAgent, ToolCall, Verdict
from callboard.testing import ScriptedModel, call, say
from callboard_mixins import AuditMixin, JsonLinesTrail, SigningKey, SqliteTrail
from callboard_mixins.audit.keys import PublicKey
from callboard_mixins.audit.verifying import Verification, read_trail, verify

_PRIVATE = Ed25519PrivateKey.generate()
PRIVATE_PEM = _PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC_PEM = _PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
SIGNING = SigningKey(PRIVATE_PEM)
PUBLIC = PublicKey(PUBLIC_PEM)
OTHER = PublicKey(
    Ed25519PrivateKey.generate()
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
)
Make = Callable[[Path], JsonLinesTrail | SqliteTrail]


class AuditedAgent(AuditMixin, ReActAgent):
    """An agent with the layer under test."""


class NoWipeMixin(ReActAgent):
    """Denies one tool and asks about another."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and call.name == "wipe":
            return Deny("never", rule="no-wipe")
        if isinstance(verdict, Proceed) and call.name == "pay":
            return verdict.ask("paying", rule="pay-asks")
        return verdict


class GuardedAgent(AuditMixin, NoWipeMixin, ReActAgent):
    """The layer under test around a guard."""


def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


def wipe() -> str:
    """Wipe the disk."""
    raise AssertionError("this must not run")


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def audited(
    script: Sequence[Any], trail: Any, *, kind: Any = AuditedAgent, **more: Any
) -> ReActAgent:
    """An agent on this script, with its trail."""
    agent: ReActAgent = kind(
        model=ScriptedModel(script), tools=[send, wipe, pay], audit=trail, **more
    )
    return agent


def one_run(trail: Any, name: str = "agent", **more: Any) -> None:
    """A run with one call that runs and one of an unknown tool."""
    script = [say(call("send", to="Ada"), call("nothing")), "done"]
    audited(script, trail, name=name, **more).run_sync("go")


def two_agents(path: Path, make: Make) -> None:
    """Fill a trail with two runs of one agent and one of another in between."""
    trail = make(path)
    for name in ("shop", "clerk", "shop"):
        one_run(trail, name)
    trail.close()


def checked(path: Path, **options: Any) -> Verification:
    return verify(read_trail(path), **options)


def told(path: Path) -> list[tuple[str, str]]:
    """Kind and call (or status) of each entry."""
    found = checked(path)
    assert found.fault is None
    return [(entry["kind"], entry["facts"].get("call", "")) for entry in found.entries]


def facts(path: Path, kind: str) -> list[dict[str, Any]]:
    """The facts of all entries of a kind."""
    return [dict(entry["facts"]) for entry in checked(path).entries if entry["kind"] == kind]
