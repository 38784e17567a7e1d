"""The access policy changes while writers, recoveries and repairs run, in a world by one seed.

No acknowledged entry is lost; nobody gets what the policy has taken away once the change has come; nobody waits for
ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import pytest

from bookkeeper.access import Mode, Policy, PolicyChange
from bookkeeper.auth.config import AuthConfig
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import BookKeeperError, UnauthorizedError
from bookkeeper.replication.repairs.repair_once import repair_once
from bookkeeper.testing.cluster import CLIENT, SimCluster
from tests.bookkeeper.bookie.ownership.house import PROVIDERS, policy

REACHES_S: Final = 5.0
"""Within so many seconds a change is on every bookie."""

OPEN: Final = policy("etl append,recover,read streams:app", "reader read streams:app", "bookie repair,recover cluster")
CLOSED: Final = policy("reader read streams:app", "bookie repair,recover cluster")


def client_of(name: str) -> ClientConfig:
    return replace(CLIENT, auth=AuthConfig(provider=f"{PROVIDERS}:named_client", options={"name": name}))


async def put(bk: BookKeeper, wanted: Policy) -> None:
    note = PolicyChange(0, "an operator", "changed")
    await bk.metadata_store.access.change(lambda old: replace(wanted, changes=old.changes), note)


class Story:
    """One world's."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.rng = cluster.world.rng
        self.open_since: float | None = None
        self.closed_since: float | None = None
        """When the policy last let the writer in, or out; the other is None."""
        self.over = False
        self.written = self.refused = self.repaired = 0

    @property
    def now(self) -> float:
        return self.cluster.world.loop.time()

    async def write(self, bk: BookKeeper) -> None:
        """Write ledgers; what is refused is tried again, in a new one."""
        while not self.over:
            began = self.now
            try:
                async with await bk.create_ledger(owner="streams:app/x") as ledger:
                    for at in range(self.rng.randrange(1, 10)):
                        payload = b"%d/%d" % (ledger.id, at)
                        sent = self.now
                        entry = await ledger.append(payload)
                        self.cluster.acked(ledger.id, entry, payload)
                        self.written += 1
                        self.check_granted(sent, "an append")
            except UnauthorizedError:
                self.refused += 1
                self.check_refused(began)
            except BookKeeperError:
                pass
            await asyncio.sleep(self.rng.random())

    def check_granted(self, sent: float, what: str) -> None:
        since = self.closed_since
        assert since is None or sent < since + REACHES_S, f"{what} of {sent} was granted, and not since {since}"

    def check_refused(self, began: float) -> None:
        since = self.open_since
        assert since is None or began < since + REACHES_S, f"refused at {began}, and granted since {since}"

    async def recover(self, bk: BookKeeper) -> None:
        """Open some ledger with recovery, which fences its writer."""
        while not self.over:
            await asyncio.sleep(self.rng.random() * 4)
            known = [each async for each in bk.list_ledgers()]
            if not known:
                continue
            sent = self.now
            try:
                async with await bk.open_ledger(self.rng.choice(known)) as reader:
                    if reader.last_add_confirmed >= 0:
                        assert [each async for each in reader.read(0, 0)]
                        self.check_granted(sent, "a read")
            except BookKeeperError:
                pass

    async def repair(self, bk: BookKeeper) -> None:
        """Copy ledgers between bookies, under a principal of its own, whatever tenants may do."""
        while not self.over:
            await asyncio.sleep(self.rng.random() * 4)
            known = [each async for each in bk.list_ledgers()]
            if not known:
                continue
            try:
                await repair_once(bk, self.rng.choice(known), owner="repairer", grace_s=1)
                self.repaired += 1
            except UnauthorizedError as error:
                raise AssertionError("who repairs has the right to") from error
            except BookKeeperError:
                pass

    async def change(self, bk: BookKeeper) -> None:
        for _ in range(2):
            self.open_since = None
            await put(bk, CLOSED)
            self.closed_since = self.now
            await asyncio.sleep(REACHES_S + self.rng.random() * 10)
            self.closed_since = None
            await put(bk, replace(OPEN, mode=self.rng.choice((Mode.ENFORCE, Mode.OBSERVE))))
            self.open_since = self.now
            await asyncio.sleep(REACHES_S + self.rng.random() * 10)
        self.over = True


@pytest.mark.rule("X12a", "X12b", "X14", "X15a")
@pytest.mark.parametrize("seed", [2])
def test_the_policy_changes_while_everybody_works(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        tale = Story(cluster)
        async with (
            cluster.connect(client_of("operator")) as operator,
            cluster.connect(client_of("etl")) as writer,
            cluster.connect(client_of("etl")) as recoverer,
            cluster.connect(client_of("bookie")) as repairer,
        ):
            await put(operator, OPEN)
            await asyncio.sleep(REACHES_S)
            tale.open_since = tale.now
            crash = asyncio.ensure_future(crashes(tale))
            work = [tale.write(writer), tale.write(writer), tale.recover(recoverer), tale.repair(repairer)]
            await asyncio.gather(tale.change(operator), *work)
            await crash
        assert tale.written > 20 and tale.refused >= 2 and tale.repaired > 1
        await cluster.wait_until_up()
        await asyncio.sleep(REACHES_S)
        await cluster.check_acked(client_of("bookie"))

    options = {"auth": AuthConfig(provider=f"{PROVIDERS}:named_server")}
    SimCluster(seed, bookies=4, **options).run(story)


async def crashes(tale: Story) -> None:
    """Bookies lose power and come back, one at a time."""
    while not tale.over:
        await asyncio.sleep(tale.rng.random() * 15)
        node = tale.cluster.node(tale.rng.choice(tale.cluster.names))
        node.crash(power=True)
        await asyncio.sleep(tale.rng.random() * 2)
        node.restart()
        await tale.cluster.wait_until_up(node.name)
