"""Shell: runs plans in processes, watches them, and tells people.

The watch stands outside of pytest, so that a process that was ended, or that hangs where no time-out of its own can
help, ends the run with the names of the tests that were under way, and leaves nothing behind.
"""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bookkeeper.launchers import machine_speed
from tests.suite.events import Broken, Collected, Ended, Event
from tests.suite.plan import Plan
from tests.suite.shard import Shard, adopt_orphans, descendants, end, reap

POLL_S: Final = 0.2
LOOK_S: Final = 2.0
"""Between two looks for progress."""
TELL_S: Final = 15.0
"""Between two lines about how far it is."""
WORDS_S: Final = 1.0
"""For a process that hangs, to write where it stands."""
LIVES: Final = 5
"""So often a plan is begun again after its process was lost, each time without the tests that were run."""
NO_TESTS: Final = 5
"""pytest's exit status where a plan has no test at all."""


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    ended: list[Ended] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What failed besides tests, or took a test with it."""
    expected: collections.Counter[str] = field(default_factory=collections.Counter)
    """Plan -> its tests."""

    def count(self, outcome: str) -> int:
        return sum(one.outcome == outcome for one in self.ended)

    @property
    def failed(self) -> list[Ended]:
        return [one for one in self.ended if one.outcome == "failed"]

    @property
    def is_good(self) -> bool:
        return not self.problems and not self.failed and bool(self.ended)

    def summary(self, seconds: float) -> str:
        """One line."""
        parts = [f"{self.count('passed')} passed"]
        parts += [f"{count} {name}" for name in ("failed", "skipped") if (count := self.count(name))]
        parts += [f"{len(self.problems)} problems"] if self.problems else []
        used = sum(one.cpu_s for one in self.ended)
        return f"{', '.join(parts)} in {spoken(seconds)} (processor time in tests: {spoken(used)})"


def spoken(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


class Run:
    """Runs plans, so many processes at a time.

    Args:
        directory: for what processes are told and tell.
        arguments: for pytest.
        environment: of the processes; a plan with more examples gets another profile of hypothesis.
        processes: at a time.
        tell: prints a line.
    """

    def __init__(
        self,
        directory: Path,
        arguments: Sequence[str],
        environment: dict[str, str],
        processes: int,
        tell: Callable[[str], None],
    ) -> None:
        self._directory = directory
        self._arguments = arguments
        self._environment = environment
        self._processes = processes
        self._tell = tell
        self._lives: collections.Counter[str] = collections.Counter()
        self._done: dict[str, list[str]] = collections.defaultdict(list)
        self._running: list[Shard] = []
        self.outcome = Outcome()

    def run(self, plans: Sequence[Plan]) -> Outcome:
        """All of them to their ends. Raises: KeyboardInterrupt, after everything was ended."""
        adopt_orphans()
        waiting = collections.deque(plans)
        self._began = speed_text = looked = time.monotonic()
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._processes:
                    self._begin(waiting.popleft())
                time.sleep(POLL_S)
                now = time.monotonic()
                looks = now - looked > LOOK_S
                for shard in list(self._running):
                    if (rest := self._attend(shard, look=looks)) is not None:
                        waiting.appendleft(rest)
                if looks:
                    looked = now
                    reap([shard.pid for shard in self._running])
                if now - speed_text > TELL_S:
                    speed_text = now
                    self._tell(self._progress())
            self._end_what_is_left()
        finally:
            for shard in self._running:
                shard.kill()
                shard.close()
            self._running.clear()
        return self.outcome

    def _begin(self, plan: Plan) -> None:
        self._lives[plan.name] += 1
        profile = {"HYPOTHESIS_PROFILE": "commit" if plan.many_examples else "core"}
        environment = {**self._environment, **machine_speed.handed_on(), **profile}
        self._running.append(Shard(plan, self._directory, self._arguments, environment))

    def _attend(self, shard: Shard, *, look: bool) -> Plan | None:
        """Hear one process; what has to be run of its plan, if it was lost."""
        status = shard.status()
        for event in shard.events():
            self._hear(shard, event)
        if status is not None:
            return self._ended(shard, status)
        if look and shard.hangs(machine_speed.stretch()):
            machine_speed.measured_again()
            if shard.hangs(machine_speed.stretch()):
                return self._lost(shard, self._hanging(shard))
        return None

    def _hear(self, shard: Shard, event: Event) -> None:
        match event:
            case Collected(tests):
                self.outcome.expected[shard.plan.name] = tests + len(shard.plan.skip)
            case Ended():
                self._done[shard.plan.name].append(event.test)
                self.outcome.ended.append(event)
                if event.outcome == "failed":
                    self._tell(f"FAILED {event.test}\n{event.text}")
            case Broken(where, text):
                self._problem(f"{where}: {text}")

    def _ended(self, shard: Shard, status: int) -> Plan | None:
        if shard.finished and status in (0, 1, NO_TESTS):
            self._leave(shard)
            return None
        how = f"signal {-status}" if status < 0 else f"status {status}"
        test = f" while {shard.test} ran" if shard.test else ""
        return self._lost(shard, f"the process of {shard.plan.name} ended ({how}){test}")

    def _hanging(self, shard: Shard) -> str:
        shard.say_where()
        time.sleep(WORDS_S)
        what = shard.test or "no test: it collects, or ends a fixture"
        return f"given up, {shard.why()}: {what} ({machine_speed.speed_text()})"

    def _lost(self, shard: Shard, why: str) -> Plan | None:
        self._problem(f"{why}\n{_end_of(shard.log)}")
        shard.kill()
        self._leave(shard)
        if shard.finished or self._lives[shard.plan.name] >= LIVES:
            return None
        lost = [shard.test] if shard.test else []
        if not lost and not self._done[shard.plan.name]:
            return None
        return shard.plan.without([*self._done[shard.plan.name], *lost])

    def _leave(self, shard: Shard) -> None:
        shard.close()
        self._running.remove(shard)

    def _problem(self, text: str) -> None:
        self.outcome.problems.append(text)
        self._tell(f"PROBLEM {text}")

    def _end_what_is_left(self) -> None:
        """Processes that tests have left behind, which are this one's children by now."""
        reap(())
        if left := descendants(os.getpid()):
            lines = "".join(f"\n  {pid} {words}" for pid, words in left.items())
            self._problem(f"tests have left {len(left)} processes behind, which are ended now:{lines}")
            end(left)

    def _progress(self) -> str:
        done, expected = len(self.outcome.ended), sum(self.outcome.expected.values())
        tests = [shard.test or f"{shard.plan.name}: collecting" for shard in self._running]
        failed = len(self.outcome.failed)
        return (
            f"{spoken(time.monotonic() - self._began)}: {done} of {expected} tests, {failed} failed; "
            f"under way: {', '.join(tests)}"
        )


def _end_of(log: Path, lines: int = 60) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
