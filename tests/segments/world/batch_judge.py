"""Compares what drivers that publish batches were told with what is in the stream (pure).

The value of a row is ``batch APP NUMBER ATTEMPT ROW``. Each attempt at a batch has rows of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from segments.publish import PublishedBatch
from segments.record import StoredRecord
from tests.segments.world.judge import LARGE

_PREFIX: Final = b"batch "
_EVERY: Final = 25
"""One of so many attempts has a row that is stored in pieces."""


@dataclass(slots=True, eq=False)
class Attempt:
    """The rows of one attempt at a batch."""

    name: int
    app: str
    """Empty: the batch has no key."""
    number: int
    tasks: list[list[bytes]]
    calls: int = 0
    """How often it was to be published."""
    refused: bool = False
    """Whether its driver was told that it is not published, and never will be."""
    done: PublishedBatch | None = None

    @property
    def rows(self) -> list[bytes]:
        """All of them, in order."""
        return [row for task in self.tasks for row in task]


@dataclass(slots=True)
class BatchJudge:
    """What drivers offered, and were told."""

    attempts: list[Attempt] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)
    """Application -> the last batch in the log of its checkpoint."""
    problems: list[str] = field(default_factory=list)
    repeated: int = 0
    """Batches of which a driver was told that they are there already."""

    def attempt(self, app: str, sizes: Sequence[int]) -> Attempt:
        """A driver begins with the batch that comes next, or with one without a key; each task has so many rows."""
        number, name = self.committed.get(app, -1) + 1 if app else 0, len(self.attempts)
        tasks: list[list[bytes]] = []
        at = 0
        for size in sizes:
            tasks.append([_PREFIX + f"{app or '-'} {number} {name} {at + row}".encode() for row in range(size)])
            at += size
        if tasks and tasks[0] and name % _EVERY == _EVERY - 1:
            tasks[0][-1] += b" " + bytes(LARGE)
        self.attempts.append(found := Attempt(name, app, number, tasks))
        return found

    def on_published(self, attempt: Attempt, done: PublishedBatch) -> None:
        """The driver was told what became of it, and writes that into its log."""
        attempt.done = done
        self.repeated += done.already_there
        if attempt.app:
            self.committed[attempt.app] = max(self.committed.get(attempt.app, -1), attempt.number)

    def judge(self, found: Sequence[StoredRecord]) -> list[str]:
        """Every problem. ``found`` is the whole stream in order, from where it was truncated."""
        places: dict[int, list[int]] = defaultdict(list)
        for at, record in enumerate(found):
            if record.value.startswith(_PREFIX):
                places[int(record.value.split(b" ", 4)[3])].append(at)
        for name, all_at in places.items():
            self._whole(self.attempts[name], all_at, [found[each].value for each in all_at])
        for attempt in self.attempts:
            if attempt.done is not None:
                self._as_told(attempt, attempt.done, attempt.name in places, found)
        for app in self.committed:
            present = sorted((at[0], name) for name, at in places.items() if self.attempts[name].app == app)
            self._once(app, [self.attempts[name] for _, name in present])
        return self.problems

    def _whole(self, attempt: Attempt, at: list[int], values: list[bytes]) -> None:
        what = self._called(attempt)
        if not attempt.calls:
            self._find(f"{what} is in the stream, and was never to be published")
        if attempt.refused:
            self._find(f"{what} is in the stream, and its driver was told that it is not")
        if at != list(range(at[0], at[0] + len(at))):
            self._find(f"the rows of {what} do not follow each other")
        rows = attempt.rows
        if values != (rows[-len(values) :] if at[0] == 0 else rows):  # what comes first may be truncated
            self._find(f"{what} has {len(values)} of {len(rows)} rows, or in another order")

    def _as_told(self, attempt: Attempt, done: PublishedBatch, is_there: bool, found: Sequence[StoredRecord]) -> None:
        what = self._called(attempt)
        if done.already_there:
            if is_there and attempt.calls == 1:
                self._find(f"{what} is in the stream, and its driver was told that another attempt is")
            return
        if done.records != len(attempt.rows):
            self._find(f"the driver of {what} was told of {done.records} rows, and it has {len(attempt.rows)}")
        if not found or done.first_seq_no < found[0].seq_no:
            return  # truncated
        at = done.first_seq_no - found[0].seq_no
        if [record.value for record in found[at : at + done.records]] != attempt.rows:
            self._find(f"{what} was published at record {done.first_seq_no}, and is not there")

    def _once(self, app: str, present: Sequence[Attempt]) -> None:
        """``present``: the attempts of an application that are in the stream, in its order."""
        numbers = [attempt.number for attempt in present]
        if numbers != sorted(set(numbers)):
            self._find(f"batches of {app} are there twice, or in another order: {numbers}")
        if not numbers:
            return
        for number in set(range(numbers[0], self.committed[app] + 1)) - set(numbers):
            tries = [each for each in self.attempts if each.app == app and each.number == number and each.calls]
            if all(each.rows for each in tries):
                self._find(f"batch {number} of {app} was committed, and no attempt at it is in the stream")

    def _called(self, attempt: Attempt) -> str:
        return f"attempt {attempt.name} at batch {attempt.number} of {attempt.app or 'nobody'}"

    def _find(self, problem: str) -> None:
        if len(self.problems) < 10:
            self.problems.append(f"S14: {problem}")
