"""A world in one thread: what the seams are bound to instead of the system, all by one seed.

world     nodes that crash, freeze and come back; begin here
disk      a disk: what was not synced may be lost or torn when its node crashes
disks     the disks of a machine that has several
network   delays, split and merged chunks, resets, silent peers, links that are cut
loop      the event loop, whose clock jumps to the next thing due
trace     what happened, and its hash: the same for the same seed
"""

from bookkeeper.testing.world.disk import SECTOR, Fault, NodeCrashed, SimDisk, SimFile
from bookkeeper.testing.world.disks import SimDisks
from bookkeeper.testing.world.loop import OWNER, SimDeadlockError, SimLoop, drop_task
from bookkeeper.testing.world.network import SimNetwork, Weather
from bookkeeper.testing.world.trace import Trace
from bookkeeper.testing.world.world import Node, SimClock, SimWorker, WorkerPace, World

__all__ = [
    "OWNER",
    "SECTOR",
    "Fault",
    "Node",
    "NodeCrashed",
    "SimClock",
    "SimDeadlockError",
    "SimDisk",
    "SimDisks",
    "SimFile",
    "SimLoop",
    "SimNetwork",
    "SimWorker",
    "Trace",
    "Weather",
    "WorkerPace",
    "World",
    "drop_task",
]
