"""Run the tests: ``python -m tests.suite test|unit|all|changed|room ROOM``.

``test`` is what CI runs: the core, and what this commit draws; ``DRAW=7`` draws with another number.
``unit`` is the core's part within Python without what takes long, ``room`` all of that of one directory or module,
``changed`` that of what differs from the last commit, and ``all`` is everything. Exit status 0: all passed.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bookkeeper.launchers import machine_speed
from tests.suite import costs as cost_table
from tests.suite import workers
from tests.suite.draw import BUCKETS, TOO_SLOW, Bucket, buckets, drawn, number_of
from tests.suite.imports import ARCHITECTURE, Imports, changed_files
from tests.suite.plan import Plan, Wanted, everything, plans
from tests.suite.run import Outcome, Run, spoken
from tests.suite.selection import OUTSIDE, ROOT, TESTS, Selection, module_of, selection

DRAW: Final = "DRAW"
_PAGE: Final = "tests/README.md says what lies where"


@dataclass(frozen=True, slots=True)
class _Work:
    plans: tuple[Plan, ...]
    drawn: tuple[Bucket, ...] = ()
    every: tuple[Bucket, ...] = ()
    number: int = 0
    is_all: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    parser.add_argument("what", choices=["test", "unit", "all", "changed", "room"])
    parser.add_argument("room", nargs="?", help="a directory or module of the product, as bookkeeper/storage")
    parser.add_argument("--jobs", type=int, help="so many processes, whatever cores, quota, memory and others say")
    parser.add_argument("--record", action="store_true", help=f"write what was measured into {cost_table.FILE.name}")
    options = parser.parse_args(arguments)
    if (options.what == "room") != bool(options.room):
        parser.error("room needs a directory or a module, as in: make room R=bookkeeper/storage")
    count, why = workers.here() if options.jobs is None else (options.jobs, f"{options.jobs} processes, as was asked")
    _tell(f"{machine_speed.speed_text()}; {why}")
    costs = cost_table.table()
    try:
        work = _work(options.what, options.room, costs, selection(), count)
    except ValueError as error:
        parser.error(str(error))
    if not work.plans:
        _tell("nothing to run")
        return 0
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what runs, as an interruption does
    with tempfile.TemporaryDirectory(prefix="tests-") as directory:
        arguments = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:timeout",
            f"--hypothesis-seed={work.number}",
            f"--randomly-seed={work.number}",
            *asserts_at(machine_speed.speed()),
        ]
        run = Run(Path(directory), arguments, {}, _at_a_time(count), _tell)
        outcome = run.run(work.plans)
    if options.record:
        _record(outcome, costs)
    _tell_end(outcome, work, time.monotonic() - began)
    return 0 if outcome.is_good else 1


def asserts_at(speed: float) -> list[str]:
    """How asserts are compiled. To rewrite those of all modules takes half a minute of the reference's processor, more
    than all else of collecting them: a slow machine shows the variables of a failed test instead."""
    return ["--assert=plain", "--showlocals"] if speed < TOO_SLOW else []


def _at_a_time(count: int) -> int:
    """How many processes keep so many cores busy: a third of the time a process waits."""
    return count + 1 if count > 1 else 1


def _work(what: str, room: str | None, costs: cost_table.Costs, lists: Selection, count: int) -> _Work:
    modules = sorted(path.relative_to(ROOT).as_posix() for path in TESTS.rglob("test_*.py"))
    match what:
        case "all":
            return _Work(everything(modules, costs, count), is_all=True)
        case "unit":
            return _Work(plans(Wanted(outside=False, heavy=False), modules, costs, lists, _at_a_time(count)))
        case "room":
            return _Work(plans(Wanted(outside=False, below=_of_room(str(room), modules)), modules, costs, lists, count))
        case "changed":
            return _Work(plans(Wanted(below=_concerned(modules)), modules, costs, lists, count))
    number = _number()
    every = buckets(costs)
    some = drawn(every, number, machine_speed.speed())
    units = tuple(unit for bucket in some for unit in bucket.units)
    return _Work(plans(Wanted(units=units), modules, costs, lists, count), some, every, number)


def _number() -> int:
    given = os.environ.get(DRAW)
    if not given:
        return number_of(ROOT)
    if not given.isdigit():
        raise ValueError(f"{DRAW} has to be a number, not {given!r}")
    return int(given)


def _of_room(room: str, modules: Collection[str]) -> set[str]:
    """The tests of a directory or a module of the product (or a directory of tests), and contracts that name it."""
    path = room.rstrip("/")
    where = ROOT / path
    if not where.exists():
        raise ValueError(f"{room}: no such directory or file below {ROOT.name}")
    mirror = path if path.startswith("tests/") else f"tests/{path}"
    if where.is_dir():
        own = {module for module in modules if module.startswith(mirror + "/")}
        files = [file.relative_to(ROOT).as_posix() for file in where.rglob("*.py")]
    else:
        name = Path(mirror)
        own = {module for module in modules if module in (mirror, f"{name.parent}/test_{name.name}")}
        files = [path]
    imports = Imports()
    return (
        own | imports.tests_that_import(files, "tests/contracts") | imports.tests_that_import(files, "tests/scenarios")
    )


def _concerned(modules: Collection[str]) -> set[str]:
    """The tests that the working tree's change can break."""
    files = changed_files()
    found = Imports().tests_above(files)
    for file in files:
        if Path(file).name == "conftest.py":
            found |= {module for module in modules if module.startswith(f"{Path(file).parent.as_posix()}/")}
    if files:
        found |= {module for module in modules if module.startswith(ARCHITECTURE)}
    _tell(f"{len(files)} files differ from the last commit; {len(found & set(modules))} modules of tests are concerned")
    return found


def _record(outcome: Outcome, earlier: cost_table.Costs) -> None:
    later = cost_table.Costs()
    speed = machine_speed.speed()
    for one in outcome.ended:
        if one.outcome == "passed":
            later.add(
                selection(),
                one.test,
                one.cpu_s * speed,
                outside=bool(one.kind),
                property_test=one.property_test,
                examples=one.many_examples,
            )
    known = {module_of(key) for some in earlier.of.values() for key in some}
    gone = [module for module in known if not (ROOT / module).exists()]
    cost_table.FILE.write_text(cost_table.written(cost_table.merged(earlier, later, gone)))


def _tell_end(outcome: Outcome, work: _Work, seconds: float) -> None:
    reasons = collections.Counter(one.text for one in outcome.ended if one.outcome == "skipped")
    for reason, count in reasons.most_common():
        _tell(f"skipped: {count} × {reason}")
    for problem in outcome.problems:
        _tell(f"problem: {problem.splitlines()[0]}")
    for one in outcome.failed:
        _tell(f"failed: {one.test}")
    if work.every:
        _tell(_about_the_draw(work))
    if work.is_all:
        _tell_kinds(outcome)
    _tell(outcome.summary(seconds))


def _tell_kinds(outcome: Outcome) -> None:
    """Where the time goes."""
    for kind in ("", *OUTSIDE):
        some = [one for one in outcome.ended if one.kind == kind]
        minutes = sum(one.cpu_s for one in some) / 60
        _tell(f"{kind or 'within Python':14} {len(some):6} tests  {minutes:6.1f} minutes of processor time")


def _about_the_draw(work: _Work) -> str:
    again = f"DRAW={work.number} make test repeats this run"
    if not work.drawn:
        return (
            f"drawn: nothing, the machine is too slow for more than the core; make test-all runs it ({_PAGE}); {again}"
        )
    names = ", ".join(str(bucket.number) for bucket in work.drawn)
    units = sum(len(bucket.units) for bucket in work.drawn)
    left = len(work.every) - len(work.drawn)
    cost = spoken(sum(bucket.seconds for bucket in work.drawn))
    return (
        f"drawn: of {BUCKETS} buckets {names} ({units} units, {cost}); {left} are left to other commits "
        f"or make test-all ({_PAGE}); {again}"
    )


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
