"""The plugin of pytest: a cluster as a fixture, and tests in virtual time.

::

    from bookkeeper.testing import faults
    from bookkeeper.testing.plugin import in_virtual_time

    @in_virtual_time
    async def test_an_append_survives_a_bookie(bookkeeper_cluster):
        async with bookkeeper_cluster.connect() as bk, await bk.create_ledger() as ledger:
            with faults.stopped(bookkeeper_cluster, "b1"):
                await ledger.append(b"x")

pytest loads this module in every project of an environment that has this distribution. It therefore imports nothing of
it before a test asks for the fixture, and it adds no option, no mark and no hook. It may be imported before pytest
looks at it (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bookkeeper.testing.cluster import SimCluster


@pytest.fixture
def bookkeeper_seed() -> int:
    """The seed of ``bookkeeper_cluster``: ``@pytest.mark.parametrize("bookkeeper_seed", range(20))`` tries others."""
    return 1


@pytest.fixture
def bookkeeper_bookies() -> int:
    """How many bookies ``bookkeeper_cluster`` has: a fixture or parameter of this name says otherwise."""
    return 3


@pytest.fixture
def bookkeeper_cluster(bookkeeper_seed: int, bookkeeper_bookies: int) -> SimCluster:
    """Production bookies, clients and a metadata store in one thread, by a seed: no socket, no file, no waiting.

    It runs within :func:`in_virtual_time`, or by its method ``run``; either starts the bookies.
    """
    from bookkeeper.testing.cluster import SimCluster

    return SimCluster(bookkeeper_seed, bookkeeper_bookies)


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine function that has a parameter ``bookkeeper_cluster``.

    It runs in the cluster's world once all bookies serve, for at most ten virtual minutes: ``asyncio.sleep(300)`` takes
    no time. Other parameters are fixtures, as ever. The test fails, too, if a task of the world
    failed and nobody looked.
    """

    @functools.wraps(test)
    def run(*, bookkeeper_cluster: SimCluster, **others: Any) -> None:
        bookkeeper_cluster.run(lambda cluster: test(bookkeeper_cluster=cluster, **others))

    return run
