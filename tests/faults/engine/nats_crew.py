"""Workers over NATS servers, which are killed and cut off as well."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from callboard_providers.engines.nats_server import NatsServers
from tests.faults.engine.cable import Cable
from tests.faults.engine.crew import Crew

NATS_LEASE_S = 2.0


@dataclass
class NatsCrew(Crew):
    """The workers of some servers. Each one of a single server has a cable of its own."""

    servers: NatsServers = field(kw_only=True)
    lease_s: float = NATS_LEASE_S
    always_starts: bool = False  # the server may be away
    orders: int = int(os.environ.get("CALLBOARD_ORDERS", "60"))
    pause_s: float = 4 * NATS_LEASE_S  # what a dead one owned is owned again after a lease
    cables: list[Cable] = field(default_factory=list[Cable])

    @classmethod
    def at(cls, folder: Path, servers: NatsServers, module: str | None = None) -> NatsCrew:
        crew = cls(folder, servers=servers)
        crew.module = module or crew.module
        return crew

    @property
    def spec(self) -> str:
        return self.servers.url

    def spec_of_worker(self) -> str:
        if len(self.servers.ports) > 1:  # they tell each other's ports to their clients
            return self.spec
        cable = Cable(self.servers.ports[0])
        self.cables.append(cable)
        return f"nats://{self.servers.token}@127.0.0.1:{cable.port}"

    def restart(self, number: int, pause_s: float) -> None:
        """Kill a server, and start it again with what it had."""
        self.servers.stop(number, kill=True)
        self.did["server killed"] += 1
        anyio.run(anyio.sleep, pause_s)
        self.servers.start(number)
        self.servers.wait_ready(number)

    async def harass_servers(self, chance: random.Random, *, pause_s: float) -> None:
        """Kill servers and pull cables out, until cancelled."""
        while True:
            await anyio.sleep(chance.uniform(0.5, 1.0) * pause_s)
            if self.cables and chance.random() < 0.6:
                await self.cut_off(chance.choice(self.cables[-3:]), chance.uniform(0.2, 1.8))
            else:
                number = chance.randrange(len(self.servers.ports))
                await run_sync(self.restart, number, chance.uniform(0.0, 1.0))

    async def cut_off(self, cable: Cable, leases: float) -> None:
        """Pull a cable out, for so many leases."""
        cable.pull_out()
        self.did["cut off"] += 1
        await anyio.sleep(leases * self.lease_s)
        cable.plug_in()

    def close(self) -> None:
        super().close()
        for cable in self.cables:
            cable.__exit__(None, None, None)
