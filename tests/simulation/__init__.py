"""Whole clusters by seed: ``python -m tests.simulation``. What is simulated, and how it is checked, says ``sim``.

sim        one seed, one world; many seeds, the command
plan       what a seed simulates: the cluster, its users, its faults
cluster    the cluster: processes that end and come back, each with its session
users      who uses it, and who looks after it
faults     what goes wrong, and how it is mended
watch      what must hold at every step, and what clients lived through
quiet      the end of a world: nothing fails any more, and everything is looked at
rollback   another end: the metadata are put back to an older state
bugs       bugs that are planted: a simulator that does not find them is too weak
faultlog   which of them are found, at which seed: ``docs/faultlog.md``
"""

from tests.simulation.sim import Result, run_seed, run_seeds

__all__ = ["Result", "run_seed", "run_seeds"]
