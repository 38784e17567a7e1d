"""One trial after the other: damage one file, start the real bookie, read everything; start it again, read again."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bookkeeper import wire
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import EntryId
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import Cluster, run
from tests.bookkeeper.bookie.garbage.test_garbage_collector import KEY
from tests.bookkeeper.bookie.garbage.test_model import packet
from tests.corruption.damage import HARMS, changed
from tests.corruption.directory import OPTIONS, Stopped, files_of, kind_of, live

NOTES: Final = ("/boot", "/identity.json", "/metadata-transaction", "/metadata-beacon")
"""What a bookie writes down beside its data. Each is one more proof of what others know, too: without it, or with an
older one, a start is as one that has seen less."""
FORGOTTEN: Final = ("gone", "older file", "sector older")
NEGATIVES: Final = (Status.NO_ENTRY, Status.NO_LEDGER)
BATCH: Final = 200
"""Trials in one simulated world."""


@dataclass(frozen=True)
class Trial:
    """One damage to one file."""

    stopped: Stopped
    path: str
    harm: str
    after: bytes | None
    needed: bool
    """Whether an answer depends on the damaged bytes: then the damage has to be noticed."""

    def __str__(self) -> str:
        before = self.stopped.files[self.path]
        places = changed(before, self.after)
        where = f"bytes {places[0]} to {places[-1]}" if places else "nothing"
        return f"{self.stopped.how}: {self.harm}, {self.path}, {where} of {len(before)}"


@dataclass
class Outcome:
    noticed: str = ""
    """How the damage showed; empty: it did not."""
    wrong_bytes: list[str] = field(default_factory=list)
    wrong_negatives: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    """Fences and deletions that count no more, and starts that fall over instead of saying what is wrong."""

    @property
    def wrong(self) -> list[str]:
        return self.wrong_bytes + self.wrong_negatives + self.forgotten


class _Warnings(logging.Handler):
    """What a bookie has told its operator."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def stopped_bookies() -> list[Stopped]:
    """The two bookies that are damaged."""
    found: list[Stopped] = []
    for clean in (False, True):

        async def main(cluster: Cluster, clean: bool = clean) -> None:
            found.append(await live(cluster, clean=clean))

        run(main, seed=3, **OPTIONS)
    return found


def trials(stopped: Sequence[Stopped], count: int, rng: Random) -> Iterator[Trial]:
    """Kinds of files and of damage take turns, so that each pair comes as often as the others."""
    needed: dict[tuple[str, str], set[int]] = {}
    made = tries = 0
    while made < count and tries < 100 * count:
        tries += 1
        one = stopped[tries % len(stopped)]
        kinds: dict[str, list[str]] = defaultdict(list)
        for path in sorted(one.files):
            kinds[kind_of(path)].append(path)
        path = rng.choice(kinds[rng.choice(sorted(kinds))])
        harm = rng.choice(sorted(HARMS))
        before = one.files[path]
        after = HARMS[harm](rng, before, one.older.get(path, b""))
        if after == before:
            continue
        key = one.how, path
        if key not in needed:
            needed[key] = one.needed(path)
        made += 1
        matters = not needed[key].isdisjoint(changed(before, after))
        yield Trial(one, path, harm, after, matters and not (path.endswith(NOTES) and harm in FORGOTTEN))


def outcomes(chosen: Iterable[Trial]) -> Iterator[tuple[Trial, Outcome]]:
    """Make the trials."""
    batch: list[Trial] = []
    for trial in chosen:
        batch.append(trial)
        if len(batch) == BATCH:
            yield from _batch(batch)
            batch = []
    yield from _batch(batch)


def _batch(batch: Sequence[Trial]) -> list[tuple[Trial, Outcome]]:
    found: list[tuple[Trial, Outcome]] = []
    if not batch:
        return found

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        for trial in batch:
            found.append((trial, await _outcome(cluster, trial)))

    run(main, seed=1, **OPTIONS)
    return found


async def _outcome(cluster: Cluster, trial: Trial) -> Outcome:
    outcome, warnings, logger = Outcome(), _Warnings(), logging.getLogger("bookkeeper")
    stopped = trial.stopped
    cluster.node.crash(power=False)
    files: dict[str, bytes | None] = {**dict.fromkeys(files_of(cluster)), **stopped.files, trial.path: trial.after}
    cluster.node.disk.replace(files)
    cluster.metadata.restore(stopped.metadata)
    logger.addHandler(warnings)
    try:
        for start in ("the first start", "the second start"):
            cluster.node.crash(power=False)
            try:
                await cluster.again()
            except (BookKeeperError, OSError) as error:
                outcome.noticed = outcome.noticed or f"refused: {error}"
                break
            except Exception as error:
                outcome.forgotten.append(f"{start} falls over: {error!r}")
                break
            await _ask(cluster, stopped, outcome, start)
    finally:
        logger.removeHandler(warnings)
    if warnings.said:
        outcome.noticed = outcome.noticed or f"said: {warnings.said[0]}"
    return outcome


async def _ask(cluster: Cluster, stopped: Stopped, outcome: Outcome, start: str) -> None:
    """Everything that was acknowledged is there, or it is said that nobody knows."""
    assert cluster.server is not None
    report, life = cluster.server.engine.report, stopped.life
    for problem in (report.limbo_reason, *report.quarantined, report.rebuilt and "the index was rebuilt"):
        outcome.noticed = outcome.noticed or (f"found: {problem}" if problem else "")
    wanted = [(number, at) for number, count in life.living.items() for at in range(count)]
    replies = await cluster.ask_all([wire.ReadEntry(number, EntryId(at)) for number, at in wanted])
    for (number, at), reply in zip(wanted, replies, strict=True):
        if reply.status in NEGATIVES:
            outcome.wrong_negatives.append(f"{start} denies entry {at} of ledger {number}")
        elif reply.status is not Status.OK:
            outcome.noticed = outcome.noticed or f"read: {reply.status.name}"
        elif reply.entry != packet(number, at):
            outcome.wrong_bytes.append(f"{start} gives another entry {at} of ledger {number}")
    closed = sorted(life.fenced | life.gone)
    adds = [wire.AddEntry(number, EntryId(10**6), KEY, packet(number, 10**6)) for number in closed]
    for number, reply in zip(closed, await cluster.ask_all(adds), strict=True):
        if reply.status is Status.OK:
            outcome.forgotten.append(f"{start} takes an add to ledger {number}, which is fenced or deleted")


# -- the table -------------------------------------------------------------------------------------------------

HEAD: Final = "| Kind of file | Damages | Of bytes that are needed | Noticed of these | Noticed of the others | "
HEAD2: Final = "Wrong bytes | Wrong negatives | Fences or deletions forgotten |"


@dataclass
class Tally:
    """What came of all trials."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    problems: list[str] = field(default_factory=list)
    """Each trial that was wrong, or whose damage was needed and not noticed."""

    def add(self, trial: Trial, outcome: Outcome) -> None:
        row = self.counts[kind_of(trial.path)]
        row["damages"] += 1
        share = "needed" if trial.needed else "other"
        row[share] += 1
        row[f"{share} noticed"] += bool(outcome.noticed)
        row["wrong bytes"] += bool(outcome.wrong_bytes)
        row["wrong negatives"] += bool(outcome.wrong_negatives)
        row["forgotten"] += bool(outcome.forgotten)
        if outcome.wrong:
            self.problems.append(f"{trial}: {outcome.wrong[0]}")
        elif trial.needed and not outcome.noticed:
            self.problems.append(f"{trial}: not noticed")

    def table(self) -> str:
        """As Markdown."""
        names = ("damages", "needed", "needed noticed", "other noticed", "wrong bytes", "wrong negatives", "forgotten")
        total: Counter[str] = Counter()
        for row in self.counts.values():
            total.update(row)
        rows = [*sorted(self.counts.items()), ("all", total)]
        lines = [HEAD + HEAD2, "|---|" + "---|" * len(names)]
        lines += [f"| {kind} | " + " | ".join(f"{row[name]:,}" for name in names) + " |" for kind, row in rows]
        return "\n".join(lines)


def campaign(count: int, seed: int) -> Tally:
    """So many trials."""
    tally = Tally()
    for trial, outcome in outcomes(trials(stopped_bookies(), count, Random(seed))):
        tally.add(trial, outcome)
    return tally
