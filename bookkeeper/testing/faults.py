"""What goes wrong in a simulated cluster, switched on for a block.

::

    with faults.stopped(cluster, "b1"), faults.slow(cluster, "b2"):
        await ledger.append(b"x")
    await cluster.wait_until_up()

Bookies are ``b1`` ... ``bN``; the story runs on the node ``client``. Whatever a fault does to a bookie, what was
acknowledged must stay readable: :meth:`SimCluster.check_acked` asks.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bookkeeper.testing.cluster import SESSION_TIMEOUT_S, SimCluster
from bookkeeper.testing.patches import patches

SLOW_SYNC_S: Final = 2.0
"""Virtual seconds of a sync on a slow disk."""


@contextmanager
def stopped(cluster: SimCluster, *bookies: str, power: bool = False) -> Iterator[None]:
    """These bookies' processes end at once, and start again with the end of the block.

    :meth:`SimCluster.wait_until_up` waits until they serve. With ``power`` their machines end, too: what was not
    synced may be lost.
    """
    for name in bookies:
        cluster.node(name).crash(power=power)
    try:
        yield
    finally:
        for name in bookies:
            if not cluster.node(name).alive:
                cluster.node(name).restart()


@contextmanager
def frozen(cluster: SimCluster, *nodes: str) -> Iterator[None]:
    """These processes stand still (SIGSTOP), and go on later without noticing."""
    for name in nodes:
        cluster.node(name).freeze()
    try:
        yield
    finally:
        for name in nodes:
            cluster.node(name).thaw()


@contextmanager
def slow(cluster: SimCluster, *bookies: str, sync_s: float = SLOW_SYNC_S) -> Iterator[None]:
    """A sync of these bookies' disks takes so many virtual seconds."""
    with patches() as patch:
        for name in bookies:
            patch(cluster.node(name).disk, "sync_s", sync_s)
        yield


@contextmanager
def full_disk(cluster: SimCluster, *bookies: str) -> Iterator[None]:
    """No byte more fits on these bookies' disks."""
    with patches() as patch:
        for name in bookies:
            patch(disk := cluster.node(name).disk, "capacity", disk.used())
        yield


@contextmanager
def cut_off(cluster: SimCluster, node: str, *others: str) -> Iterator[None]:
    """Nothing gets from ``node`` to the others or back (default: all bookies and the client). Connections stay."""
    links = [(node, other) for other in others or (*cluster.names, cluster.client.name) if other != node]
    for one, other in links:
        cluster.world.network.cut(one, other)
    try:
        yield
    finally:
        for one, other in links:
            cluster.world.network.mend(one, other)


@contextmanager
def without_metadata(cluster: SimCluster, *nodes: str) -> Iterator[None]:
    """These processes do not reach the metadata store. A block longer than :data:`SESSION_TIMEOUT_S` costs their
    sessions, which they learn when they reach it again."""
    sessions = [cluster.sessions[name] for name in nodes]
    over = False

    def time_out() -> None:
        for session in sessions if not over else ():
            cluster.store.end_session(session.session_id)

    for session in sessions:
        cluster.store.suspend(session)
    cluster.world.loop.call_later(SESSION_TIMEOUT_S, time_out, context=contextvars.Context())
    try:
        yield
    finally:
        over = True
        for session in sessions:
            cluster.store.resume(session)


def lose_session(cluster: SimCluster, *nodes: str) -> None:
    """The metadata store ends these processes' sessions now: what they registered is gone until they do so again."""
    for name in nodes:
        cluster.store.expire(cluster.sessions[name])
