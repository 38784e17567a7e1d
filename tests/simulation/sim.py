"""Simulate whole clusters: one seed, one world.

::

    python -m tests.simulation --seeds 100            # seeds 0 ... 99
    python -m tests.simulation --seed 42              # that one, and what led to the failure
    python -m tests.simulation --seeds 300 --bug NAME # until a planted bug is found

A seed decides everything: the cluster and its users (:mod:`~tests.simulation.plan`), what goes wrong
(:mod:`~tests.simulation.faults`), every delay and every torn write. Bookies and clients are the production code.
What is checked: each step, and what clients lived through (:mod:`~tests.simulation.watch`), and that everything
comes to its end and is there when the faults are over (:mod:`~tests.simulation.quiet`); or that nobody believes
metadata that were put back to an older state (:mod:`~tests.simulation.rollback`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.meta.stores.memory import MemorySnapshot
from tests.simulation import plan as sim_plan
from tests.simulation.bugs.bugs import BUGS, planted
from tests.simulation.cluster import SwarmCluster
from tests.simulation.faults.nemesis import Nemesis
from tests.simulation.plan import WorldPlan
from tests.simulation.quiet import quiet_phase
from tests.simulation.rollback import PutBack
from tests.simulation.users.actors import MAKERS, Actor
from tests.simulation.users.undeleter import Undeleter
from tests.simulation.watch.history import check_history
from tests.simulation.watch.seals import watched_seals

WITHIN_S = 1200.0
"""Virtual seconds after which a world is taken to be stuck (V6)."""


@dataclass(slots=True)
class Result:
    """What one seed gave."""

    seed: int
    plan: WorldPlan
    bug: str | None = None
    problems: list[str] = field(default_factory=list)
    digest: str = ""
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    last_events: list[str] = field(default_factory=list)

    def report(self) -> str:
        """What failed, and how to see it again."""
        bug = f" --bug {self.bug}" if self.bug else ""
        problems = "\n  ".join(self.problems[:12])
        return (
            f"seed {self.seed}: {len(self.problems)} problems ({self.plan})\n  {problems}\n"
            f"  replay: python -m tests.simulation --seed {self.seed}{bug}"
        )


def run_seed(seed: int, bug: str | None = None) -> Result:
    """Simulate one world. Never raises for what goes wrong in it."""
    began = time.process_time()
    with _quietly() as logged, planted(bug):
        result = _run(seed, bug, logged)
    result.cpu_s = time.process_time() - began
    return result


def _run(seed: int, bug: str | None, logged: list[str]) -> Result:
    result = Result(seed, sim_plan.plan(seed), bug)
    cluster = SwarmCluster(result.plan)
    world, problems = cluster.world, cluster.monitor.problems
    with world, watched_seals(cluster.monitor.problem, cluster.monitor.count):
        try:
            world.loop.run_until_complete(_limited(cluster))
        except Exception as error:
            cluster.monitor.problem("V6", repr(error))
        result.virtual_s = world.loop.time()
        result.last_events = list(world.trace.last)
        result.digest = world.trace.digest
        problems += logged
        for failure in world.loop.failures:
            problems.append(f"P7: {failure.get('message')}: {failure.get('exception')!r}")
        problems += [f"history: {anomaly}" for anomaly in check_history(cluster.history.events)]
        result.problems = list(dict.fromkeys(problems))
        result.counts = {**world.trace.counts, **cluster.monitor.counts}
    return result


async def _limited(cluster: SwarmCluster) -> None:
    async with asyncio.timeout(WITHIN_S):
        await _simulate(cluster)


async def _simulate(cluster: SwarmCluster) -> None:
    """Begin, chaos, quiet."""
    await init_cluster_in(cluster.store.connect(), cluster.client.seams)
    for name in list(cluster.names):
        await cluster.add_bookie(name)
    while not all(cluster.is_up(name) for name in cluster.names):  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.01)
    size = cluster.plan
    names = [f"w{i}" for i in range(size.writers)]
    names += [f"r{i}" for i in range(size.recoverers)] + [f"t{i}" for i in range(size.tailers)]
    names += [f"d{i}" for i in range(size.repairers)]
    names += [f"h{i}" for i in range(size.healers)]
    names += [f"u{i}" for i in range(size.undeleters)]
    makers = {**MAKERS, "u": Undeleter}
    actors: list[Actor] = [makers[name[0]](cluster, name) for name in names]
    for actor in actors:
        cluster.launch(actor.node, actor.program)
    nemesis = Nemesis(cluster)
    backup = cluster.world.loop.create_task(_backup(cluster)) if size.rollback_after_s else None
    await nemesis.run()
    nemesis.heal()
    if backup is not None:
        await PutBack(cluster, actors, await backup).run()
        return
    cluster.calm = True
    cluster.world.trace.add(cluster.world.loop.time(), "calm")
    if not cluster.monitor.problems:
        await quiet_phase(cluster, actors)


async def _backup(cluster: SwarmCluster) -> MemorySnapshot:
    await asyncio.sleep(cluster.plan.rollback_after_s)
    return cluster.store.snapshot()


class _Errors(logging.Handler):
    """Errors that were logged with an exception are failures that nobody foresaw."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.found.append(f"P7: logged: {record.getMessage()}: {record.exc_info[1]!r}")


@contextlib.contextmanager
def _quietly() -> Iterator[list[str]]:
    """No log lines, no garbage collection in between, nothing said about coroutines of machines that crashed."""
    logged: list[str] = []
    logger, handler = logging.getLogger("bookkeeper"), _Errors(logged)
    before = (logger.level, logger.propagate, sys.unraisablehook, gc.isenabled())
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    sys.unraisablehook = lambda *_: None
    freezes = not gc.get_freeze_count()  # else most of what is there stands aside already
    if freezes:
        gc.collect(1)
        gc.freeze()
    gc.disable()
    try:
        yield logged
    finally:
        gc.collect()
        if freezes:
            gc.unfreeze()
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate, sys.unraisablehook = before[1], before[2]
        if before[3]:
            gc.enable()


# -- many seeds -------------------------------------------------------------------------------------------


def run_seeds(seeds: Sequence[int], bug: str | None = None, jobs: int = 1) -> Iterator[Result]:
    """The results, in the order of the seeds."""
    if jobs <= 1:
        for seed in seeds:
            yield run_seed(seed, bug)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_seed, seeds, [bug] * len(seeds), chunksize=4)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Simulate whole clusters.")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds  [default: 100]")
    parser.add_argument("--first", type=int, default=0, help="the first of them  [default: 0]")
    parser.add_argument("--seed", type=int, help="only this seed, with its last events")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this bug, and stop when it is found")
    parser.add_argument("--jobs", type=int, default=1, help="processes  [default: 1]")
    parser.add_argument("--counts", action="store_true", help="print how often what happened")
    parser.add_argument("--events", type=int, default=60, help="with --seed: how many of the last events to print")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0 if nothing was found (with ``--bug``: if it was)."""
    options = _arguments(argv)
    if options.seed is not None:
        return _one(options)
    began = time.perf_counter()
    failed: list[Result] = []
    counts: Counter[str] = Counter()
    times: list[float] = []
    virtual = 0.0
    for result in run_seeds(range(options.first, options.first + options.seeds), options.bug, options.jobs):
        counts.update(result.counts)
        times.append(result.cpu_s)
        virtual += result.virtual_s
        if result.problems:
            failed.append(result)
            _say(result.report())
            if options.bug:
                break
    if options.counts:
        _say(format_counts(counts))
    _say(
        f"{len(times)} seeds, {len(failed)} failed; {virtual / 3600:.2f} virtual hours in "
        f"{time.perf_counter() - began:.0f} s, median {statistics.median(times):.2f} s of CPU a seed"
    )
    return int(bool(failed) is not bool(options.bug))


def _one(options: argparse.Namespace) -> int:
    result = run_seed(options.seed, options.bug)
    _say("\n".join(result.last_events[-options.events :]))
    _say(f"seed {result.seed}: {result.plan}\ntrace {result.digest}, {result.cpu_s:.2f} s of CPU")
    if options.counts:
        _say(format_counts(result.counts))
    _say(result.report() if result.problems else "nothing was found")
    return int(bool(result.problems) is not bool(options.bug))


def format_counts(counts: dict[str, int] | Counter[str]) -> str:
    """One line each, sorted by name."""
    return "\n".join(f"  {count:>10,}  {name}" for name, count in sorted(counts.items()))


def _say(text: Any) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
