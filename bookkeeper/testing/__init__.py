"""Shipped for our tests and everyone else's: a world in one thread, by one seed.

Begin with :mod:`~bookkeeper.testing.world`.
"""

from bookkeeper.testing.disk import Fault, NodeCrashed, SimDisk
from bookkeeper.testing.loop import SimDeadlockError, SimLoop
from bookkeeper.testing.network import SimNetwork, Weather
from bookkeeper.testing.trace import Trace
from bookkeeper.testing.world import Node, SimClock, SimWorker, WorkerPace, World

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
