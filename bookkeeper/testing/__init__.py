"""Shipped for our tests and everyone else's: a world in one thread, by one seed.

Rooms and modules, each above those that it imports
    cluster         production bookies and clients in one world: to write tests with
    world           nodes that crash and freeze, their disks, one network, one clock
    patches         production code replaced for a while
    certificates    throw-away certificates

Begin with :mod:`~bookkeeper.testing.world`.
"""

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
