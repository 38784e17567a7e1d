"""What the access policy costs: appends with it off and enforced, in interleaved pairs on the same bookies.

python -m benchmarks.access [--certificates [--rates]] [--pairs N] [--entries N] [DIRECTORY]

Bookies are processes of their own. Each pair writes one ledger with the policy off and one with it enforced, the order
changing. With --certificates bookies and client show who they are over TLS, and with the policy enforced the client has
its share of the memory of requests; with --rates also a tenant and a principal have rates, which are counted and never
reached; without any the grants alone are asked. Beside the wall clock stands the bookies' processor time, user and
system, for each entry on each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.processes import BookieProcesses
from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.access import (
    CLUSTER,
    Grant,
    Mode,
    Policy,
    PolicyChange,
    PrincipalQuota,
    Quota,
    Resource,
    Subject,
    Tenant,
)
from bookkeeper.access.principal import ANYONE
from bookkeeper.access.rights import EVERY_RIGHT
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import run
from examples.certificates import Authority

PAIRS: Final = 15
SIZE: Final = 1000
COUNT: Final = 30_000
RUN: Final = 200
ALONE: Final = 1000
OWNER: Final = "ledgers:benchmark"
RATES: Final = Quota(adds_per_s=1 << 40, bytes_per_s=1 << 50)
POLICY: Final = Policy(grants=(Grant(ANYONE, EVERY_RIGHT, CLUSTER),))
_BOOKIES: Final = (Grant(Subject.parse("bookie"), EVERY_RIGHT, CLUSTER),)
_TEAM: Final = Tenant("team", (Subject.parse("client"),), (Resource.parse(OWNER),))
SHARED: Final = Policy(grants=_BOOKIES, tenants=(_TEAM,))
COUNTED: Final = Policy(
    grants=_BOOKIES, tenants=(replace(_TEAM, quota=RATES),), quotas=(PrincipalQuota(ANYONE, RATES),)
)
TICKS: Final = 100
"""Of the system's clock of processor time, in a second."""


@dataclass(frozen=True)
class Cost:
    """Of one ledger."""

    add_us: float
    """Wall clock for an entry, window 1000."""
    bookie_us: float
    """Processor time of a bookie for an entry."""
    p50_us: float
    """Of an append in flight alone."""


def processor_s(pids: Sequence[int]) -> float:
    """Processor time of these processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / TICKS


async def _put(bk: BookKeeper, policy: Policy, mode: Mode) -> None:
    note = PolicyChange(0, "benchmark", mode.value)
    await bk.metadata_store.access.change(lambda old: replace(policy, mode=mode, changes=old.changes), note)
    while True:
        reports = await bk.metadata_store.access_servers.reports()
        if len(reports) >= 3 and all(each.mode is mode for each in reports):
            return
        await asyncio.sleep(0.1)


async def _write(bk: BookKeeper, pids: Sequence[int], count: int) -> Cost:
    payloads = [bytes([number % 256]) * SIZE for number in range(RUN)]
    async with await bk.create_ledger(owner=OWNER) as ledger:
        await ledger.append_many(payloads)
        before, began = processor_s(pids), time.perf_counter()
        for _ in range(count // RUN):
            for payload in payloads:
                await ledger.room()
                ledger.append_nowait(payload)
        await ledger.flush()
        took, spent = time.perf_counter() - began, processor_s(pids) - before
        alone = []
        for _ in range(ALONE):
            began = time.perf_counter()
            await ledger.append(payloads[0])
            alone.append(time.perf_counter() - began)
    await bk.delete_ledger(ledger.id)
    return Cost(took / count * 1e6, spent / count / len(pids) * 1e6, median(alone) * 1e6)


async def measure(
    uri: str, pids: Sequence[int], policy: Policy, tls: TlsConfig | None, pairs: int, count: int
) -> dict[Mode, list[Cost]]:
    """The costs of each mode."""
    config = ClientConfig(
        add_timeout_ms=120_000,
        bookie_stall_ms=60_000,
        bookie_trail_bytes_max=1 << 30,
        pending_entries_max=1000,
        tls=tls,
    )
    found: dict[Mode, list[Cost]] = {Mode.OFF: [], Mode.ENFORCE: []}
    async with BookKeeper.connect(uri, config=config) as bk:
        for pair in range(pairs):
            for mode in list(found)[:: 1 if pair % 2 else -1]:
                await _put(bk, policy, mode)
                found[mode].append(await _write(bk, pids, count))
    return found


def _certificates(directory: Path) -> tuple[TlsConfig, Sequence[str], dict[str, str]]:
    """What the client shows, and the options and the environment of bookies."""
    authority = Authority(directory / "authority")
    bookie, client = authority.server("bookie", uris=["bookie"]), authority.client("client")
    options = ("--tls-cert", bookie.cert, "--tls-key", bookie.key, "--tls-client-ca", authority.ca)
    environment = {"BK_TLS_CA": authority.ca, "BK_TLS_CERT": bookie.cert, "BK_TLS_KEY": bookie.key}
    return TlsConfig(ca=authority.ca, cert=client.cert, key=client.key), options, environment


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.access")
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--entries", type=int, default=COUNT)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("directory", nargs="?")
    chosen = parser.parse_args(arguments)
    with ExitStack() as held:
        directory = Path(held.enter_context(tempfile.TemporaryDirectory(dir=chosen.directory)))
        tls, options, environment = _certificates(directory) if chosen.certificates else (None, (), {})
        cluster = held.enter_context(BookieProcesses(directory / "cluster", environment=environment, options=options))
        policy = COUNTED if chosen.rates else SHARED if chosen.certificates else POLICY
        found = run(measure(cluster.metadata, cluster.pids, policy, tls, chosen.pairs, chosen.entries))
        for name in Cost.__dataclass_fields__:
            off, on = ([getattr(each, name) for each in found[mode]] for mode in (Mode.OFF, Mode.ENFORCE))
            pairs = median(two / one for one, two in zip(off, on, strict=True) if one)
            print(f"{name:>12}  off {median(off):9.2f}  enforced {median(on):9.2f}  pairs {100 * (pairs - 1):+.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
