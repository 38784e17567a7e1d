"""Shipped for our tests and everyone else's: a world in one thread, by one seed. ``docs/testing.md`` is its page.

Rooms and modules, each above those that it imports
    plugin          the plugin of pytest: a cluster as a fixture, tests in virtual time
    faults          what goes wrong in a cluster, switched on for a block
    cluster         production bookies and clients in one world: to write tests with
    world           nodes that crash and freeze, their disks, one network, one clock
    patches         production code replaced for a while

Begin with :mod:`~bookkeeper.testing.world`. Its names are here, too; they are loaded when first used, so that pytest
can load the plugin of this room without the world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookkeeper.testing.world import (
        Fault,
        Node,
        NodeCrashed,
        SimClock,
        SimDeadlockError,
        SimDisk,
        SimLoop,
        SimNetwork,
        SimWorker,
        Trace,
        Weather,
        WorkerPace,
        World,
    )

__all__ = [
    "Fault",
    "Node",
    "NodeCrashed",
    "SimClock",
    "SimDeadlockError",
    "SimDisk",
    "SimLoop",
    "SimNetwork",
    "SimWorker",
    "Trace",
    "Weather",
    "WorkerPace",
    "World",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'bookkeeper.testing' has no attribute {name!r}")
    from bookkeeper.testing import world

    return getattr(world, name)
