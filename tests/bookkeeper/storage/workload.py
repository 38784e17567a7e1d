"""A small life of a bookie's disk, and what must be true after it was cut short."""

from __future__ import annotations

import errno
import random
import struct
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeAlias

from bookkeeper.codec import Adds, Run, record
from bookkeeper.errors import BookieFailedError, DiskFullError, NoSuchEntryError, NoSuchLedgerError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.results import PackedEntries
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerLogLayout
from bookkeeper.volumes import Volumes
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk

CONFIG = StorageConfig(
    journal_dir="/journal",
    ledger_dir="/ledgers",
    journal_file_bytes=16384,
    group_bytes=8192,
    inflight_bytes=65536,
    entry_log_bytes=8192,
    checkpoint_bytes=1 << 30,
    reserve_bytes=0,
    index_segments=3,
)
PER_LEDGER = replace(CONFIG, entry_log_per_ledger=True, ledger_buffer_bytes=8192, open_logs_max=2, log_idle_s=60.0)
"""A log per ledger; a few groups fill the buffer, and three ledgers take turns with the descriptors."""

KEY = b"k" * 20
Storage: TypeAlias = Engine | Volumes
"""What answers as an engine does."""


def make_entry(ledger_id: int, entry_id: int, lac: int | None = None, size: int = 60) -> bytes:
    """An entry whose payload tells where it belongs."""
    lac = entry_id - 1 if lac is None else lac
    payload = (b"%d/%d " % (ledger_id, entry_id)).ljust(size, b".")
    return struct.pack(">qqqq", ledger_id, entry_id, lac, size * (entry_id + 1)) + b"digest.." + payload


def lid(number: int) -> LedgerId:
    return LedgerId(number)


def open_engine(disk: RecordingDisk, config: StorageConfig = CONFIG) -> tuple[Engine, QueueWorkers]:
    """A start after a crash or a clean stop: the locks of the last life are gone."""
    disk.locks.clear()
    workers = QueueWorkers()
    return Engine.open(config, disk, workers), workers


def close(engine: Engine, workers: QueueWorkers) -> None:
    """A clean stop."""
    ended: list[BaseException | None] = []
    engine.close(ended.append)
    workers.pump()
    assert ended == [None]


def add(engine: Storage, ledger_id: int, entry_id: int, **how: int) -> bytes:
    entry = make_entry(ledger_id, entry_id, **how)
    engine.append_entry(lid(ledger_id), KEY, entry)
    return entry


def make_adds(ledger_id: int, entry_ids: list[int], size: int = 60, lac: int | None = None) -> Adds:
    """A run as the codec would cut it: ascending ids, holes allowed."""
    entries = [make_entry(ledger_id, entry_id, lac, size) for entry_id in entry_ids]
    records = [record(entry) for entry in entries]
    ends = array("q", accumulate(map(len, records)))
    contiguous = entry_ids[-1] - entry_ids[0] == len(entry_ids) - 1
    run = Run(ledger_id, KEY, 0, len(entries), contiguous, entry_ids[-1] - 1 if lac is None else lac)
    ids = array("q", entry_ids)
    return Adds(0, b"".join(records), 0, ends, b"", array("q"), ids, [run], [], [], False, False, None)


def landed(engine: Storage, adds: Adds) -> Adds:
    """The same adds, their records built where the engine wants them, as a connection has the codec build them."""
    records = bytes(adds.records)
    landing = engine.landing(len(records))
    assert landing is not None
    view, at = landing
    view[at : at + len(records)] = records
    return adds._replace(records=view, record_start=at, record_ends=array("q", [at + end for end in adds.record_ends]))


def read(engine: Storage, workers: QueueWorkers, ledger_id: int, entry_id: int) -> bytes | BaseException:
    got: list[bytes | BaseException] = []
    engine.read(lid(ledger_id), EntryId(entry_id), got.append)
    workers.pump()
    assert len(got) == 1, "exactly one reply"
    return got[0]


def read_batch(engine: Storage, workers: QueueWorkers, ledger_id: int, first: int, **limits: int) -> list[bytes]:
    got: list[PackedEntries | BaseException] = []
    count, size = limits.get("count", 0), limits.get("size", 1 << 20)
    engine.read_batch(lid(ledger_id), EntryId(first), count, size, got.append)
    workers.pump()
    assert len(got) == 1, "exactly one reply"
    if isinstance(got[0], BaseException):
        raise got[0]
    entries, body = [], got[0].body
    while body:
        length = int.from_bytes(body[:4], "big")
        entries.append(body[4 : 4 + length])
        body = body[4 + length :]
    assert len(entries) == got[0].count
    return entries


@dataclass
class Truth:
    """What was sent, and when (in operations of the disk) it was acknowledged."""

    sent: dict[tuple[int, int], bytes] = field(default_factory=dict)
    acked: dict[tuple[int, int], int] = field(default_factory=dict)
    fenced: dict[int, int] = field(default_factory=dict)
    lacs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Ledger -> (explicit LAC, when)."""
    dropped: dict[int, int] = field(default_factory=dict)
    """Ledger -> when its removal was asked for."""
    gone: dict[int, int] = field(default_factory=dict)
    """Ledger -> when its removal was acknowledged."""


class Life:
    """Drives an engine and writes down the truth."""

    def __init__(
        self,
        disk: RecordingDisk,
        config: StorageConfig = CONFIG,
        opened: tuple[Storage, QueueWorkers] | None = None,
    ) -> None:
        self.disk, self.truth = disk, Truth()
        self.engine, self.workers = opened or open_engine(disk, config)

    @property
    def now(self) -> int:
        """An answer counts from the operation after it on, for nothing need follow what made it true."""
        return len(self.disk.ops) + 1

    def add(self, ledger_id: int, *entry_ids: int, size: int = 60) -> None:
        """One group of adds, left to the journal."""
        keys = [(ledger_id, entry_id) for entry_id in entry_ids]
        for key in keys:
            self.truth.sent[key] = add(self.engine, *key, size=size)

        def acked(error: BaseException | None) -> None:
            if error is None:
                self.truth.acked.update(dict.fromkeys(keys, self.now))

        self.engine.when_durable(acked)

    def fence(self, ledger_id: int) -> None:
        def acked(error: BaseException | None) -> None:
            if error is None:
                self.truth.fenced[ledger_id] = self.now

        self.engine.fence(lid(ledger_id), KEY, acked)

    def explicit_lac(self, ledger_id: int, lac: int) -> None:
        def acked(error: BaseException | None) -> None:
            if error is None:
                self.truth.lacs[ledger_id] = (lac, self.now)

        self.engine.set_explicit_lac(lid(ledger_id), KEY, lac, b"blob%d" % lac, acked)

    def collect(self, *ledger_ids: int) -> None:
        def acked(error: BaseException | None) -> None:
            if error is None:
                self.truth.gone.update(dict.fromkeys(ledger_ids, self.now))

        self.truth.dropped.update(dict.fromkeys(ledger_ids, self.now))
        self.engine.collect(set(map(lid, ledger_ids)), acked)

    def checkpoint(self) -> None:
        self.engine.checkpoint(lambda error: None)

    def say_closed(self, ledger_id: int) -> None:
        """Advice; and then a look at what has ended."""
        self.engine.ledger_closed(lid(ledger_id))
        self.engine.finish_logs()

    def compact(self) -> None:
        self.engine.compact(lambda error: None, major=True)

    def pump(self) -> None:
        self.workers.pump()


def standard_life(disk: RecordingDisk, config: StorageConfig = CONFIG) -> Truth:
    """30 adds on 4 ledgers, fences (one of a ledger never seen), explicit LAC, journal rolls, checkpoints, rotations of
    the entry log, a merge, a collection, a clean stop."""
    life = Life(disk, config)
    for entry_id in range(5):
        life.add(1, entry_id)
        life.add(2, entry_id, size=900)
        life.pump()
    life.fence(9)
    life.add(3, 0, 1, 2, size=900)
    life.pump()
    life.checkpoint()
    life.add(4, 0, 1, 2)
    life.pump()
    life.explicit_lac(3, 2)
    life.add(2, 5, 6, 7, size=900)
    life.fence(1)
    life.pump()
    life.checkpoint()
    life.pump()
    life.add(3, 3, 4, 5, size=700)
    life.add(4, 3)
    life.pump()
    life.collect(1, 2)
    life.pump()
    life.add(4, 4, 6, 8, 9, 10)
    life.pump()
    life.checkpoint()
    life.pump()
    life.checkpoint()
    life.add(4, 5)
    life.pump()
    life.add(3, 6)
    life.pump()
    life.engine.close(lambda error: None)
    life.pump()
    return life.truth


LEDGER_LOGS: dict[str, Any] = {
    name: getattr(PER_LEDGER, name)
    for name in ("entry_log_per_ledger", "ledger_buffer_bytes", "open_logs_max", "log_idle_s")
}
"""The settings in which the layouts differ."""


def ledger_logs_life(disk: RecordingDisk, rng: random.Random) -> Truth:
    """A log per ledger: ledgers take turns with few descriptors and a small buffer, end, are said to be closed, are
    written again, deleted, and follow each other; groups come while the logs are written."""
    life = Life(disk, replace(PER_LEDGER, ledger_buffer_bytes=rng.choice([4096, 8192, 1 << 20])))
    following = dict.fromkeys(range(1, 5), 0)
    for _ in range(50):
        ledger_id, chance = rng.choice(sorted(following.keys() - life.truth.dropped.keys())), rng.random()
        if chance < 0.5:
            if life.engine.is_fenced(lid(ledger_id)):
                continue
            count = rng.randrange(1, 5)
            life.add(ledger_id, *range(following[ledger_id], following[ledger_id] + count), size=rng.choice([60, 900]))
            following[ledger_id] += count
        elif chance < 0.78:
            life.workers.step()
            life.workers.step()
        elif chance < 0.86:
            life.checkpoint()
        elif chance < 0.91:
            life.say_closed(ledger_id)
        elif chance < 0.93:
            life.fence(rng.choice([4, 7, 8]))
        elif chance < 0.95:
            life.explicit_lac(ledger_id, following[ledger_id])
        elif len(following) < 7:
            life.collect(ledger_id)
            following[len(following) + 1] = 0
    life.pump()
    if rng.random() < 0.5:
        life.engine.close(lambda error: None)
        life.pump()
    return life.truth


def random_life(disk: RecordingDisk, rng: random.Random, config: StorageConfig = CONFIG) -> Truth:
    """Steps in any order; the workers' jobs interleave with what is asked for meanwhile."""
    life = Life(disk, replace(config, split_bytes=rng.choice([0, 1500, CONFIG.split_bytes])))
    following = dict.fromkeys((1, 2, 3), 0)
    for _ in range(60):
        ledger_id = rng.choice(list(following))
        chance = rng.random()
        if chance < 0.45:
            if ledger_id not in life.truth.dropped and not life.engine.is_fenced(lid(ledger_id)):
                count = rng.randrange(1, 5)
                life.add(
                    ledger_id, *range(following[ledger_id], following[ledger_id] + count), size=rng.choice([9, 900])
                )
                following[ledger_id] += count
        elif chance < 0.8:
            life.workers.step()
        elif chance < 0.9:
            life.checkpoint()
        elif chance < 0.94:
            life.fence(rng.choice([3, 7, 8]))
        elif chance < 0.97 and 2 not in life.truth.dropped:
            life.explicit_lac(2, following[2])
        elif chance > 0.985 and not life.truth.dropped:
            life.collect(1)
    life.pump()
    if rng.random() < 0.5:
        life.engine.close(lambda error: None)
        life.pump()
    return life.truth


def compacting_life(disk: RecordingDisk, rng: random.Random, config: StorageConfig = CONFIG) -> Truth:
    """Ledgers that share entry logs; some are deleted, and the logs compacted while adds go on, entries come again and
    checkpoints are made."""
    life = Life(disk, replace(config, log_sync_bytes=rng.choice([0, 1024]), major_compaction_ratio=1.0))
    following = dict.fromkeys(range(1, 7), 0)

    def write(steps: int) -> None:
        for _ in range(steps):
            ledger_id = rng.choice(sorted(following.keys() - life.truth.dropped.keys()))
            count, first = rng.randrange(1, 4), following[ledger_id]
            if life.engine.is_fenced(lid(ledger_id)):
                continue
            if first and rng.random() < 0.2:  # the same again
                life.add(ledger_id, rng.randrange(first), size=300)
                continue
            life.add(ledger_id, *range(first, first + count * 2, rng.choice([1, 2])), size=300)
            following[ledger_id] = first + count * 2
            if rng.random() < 0.3:
                life.pump()
            if rng.random() < 0.1:
                life.explicit_lac(ledger_id, following[ledger_id])

    write(14)
    life.fence(6)
    life.checkpoint()
    life.pump()
    write(4)
    for gone in ((1, 2), (3,)):
        life.collect(*gone)
        life.pump()
        life.compact()
        for _ in range(rng.randrange(30)):
            life.workers.step()
        write(3)
        if rng.random() < 0.3:
            life.collect(4)
        if rng.random() < 0.3:
            life.checkpoint()
        life.pump()
    write(2)
    life.pump()
    if rng.random() < 0.5:
        life.engine.close(lambda error: None)
        life.pump()
    return life.truth


class LoopLife(Life):
    """One with a clock that stands still: groups are written on the loop as well, logs are synced in steps, and the
    workers and the loop take turns in any order."""

    CONFIG = replace(CONFIG, inline_sync_us=100.0, log_sync_bytes=2048, cached_bytes=4096)

    def __init__(self, disk: RecordingDisk, rng: random.Random, **layout: Any) -> None:
        self.disk, self.truth, self.rng = disk, Truth(), rng
        self.workers, self.turns = QueueWorkers(), list[Callable[[], None]]()
        disk.locks.clear()
        self.engine = Engine.open(
            replace(self.CONFIG, split_bytes=rng.choice([0, 1500, CONFIG.split_bytes]), **layout),
            disk,
            self.workers,
            monotonic=lambda: 0.0,
            call_later=lambda _delay, callback: self.turns.append(callback),
        )
        assert isinstance(self.engine, Engine)
        self.engine._commit.inline.on = True

    def step(self) -> bool:
        """The loop's next turn, or the next job of one of the workers; the journal's groups are checked after it."""
        done = self._step()
        assert isinstance(self.engine, Engine)
        self.engine._commit.groups.validate_state()
        if isinstance(self.engine._layout, LedgerLogLayout):
            self.engine._layout.logs.validate_state()
        return done

    def _step(self) -> bool:
        names = [name for name, _, _ in self.workers.jobs]
        ready = [*sorted(set(names)), *(["loop"] if self.turns else [])]
        if not ready:
            return False
        chosen = self.rng.choice(ready)
        if chosen == "loop":
            self.turns.pop(0)()
        else:
            self.workers.jobs.insert(0, self.workers.jobs.pop(names.index(chosen)))
            self.workers.step()
        return True

    def pump(self) -> None:
        while self.step():
            pass


def random_loop_life(disk: RecordingDisk, rng: random.Random, **layout: Any) -> Truth:
    """As :func:`random_life`; now and then a disk that takes nothing, for a step."""
    life = LoopLife(disk, rng, **layout)
    following = dict.fromkeys((1, 2, 3), 0)
    for _ in range(80):
        if rng.random() < 0.1:
            where = rng.choice([("write", ".log"), ("open", ".log"), ("write", ".index"), ("rename", "manifest")])
            disk.faults[where] = OSError(rng.choice([errno.ENOSPC, errno.EMFILE]), "for now")
        ledger_id, chance = rng.choice(list(following)), rng.random()
        with suppress(DiskFullError, BookieFailedError):
            if chance < 0.4:
                if ledger_id not in life.truth.dropped and not life.engine.is_fenced(lid(ledger_id)):
                    first, following[ledger_id] = following[ledger_id], following[ledger_id] + rng.randrange(1, 5)
                    life.add(ledger_id, *range(first, following[ledger_id]), size=rng.choice([9, 900]))
            elif chance < 0.8:
                life.step()
                life.step()
            elif chance < 0.9:
                life.checkpoint()
            elif chance < 0.94:
                life.fence(rng.choice([3, 7, 8]))
            elif chance < 0.97 and 2 not in life.truth.dropped:
                life.explicit_lac(2, following[2])
            elif chance > 0.985 and not life.truth.dropped:
                life.collect(1)
        disk.faults.clear()
        life.engine.check_space()
        life.engine.finish_logs()
    life.pump()
    if rng.random() < 0.5:
        life.engine.close(lambda error: None)
        life.pump()
    return life.truth


State = dict[int, tuple[dict[int, bytes], bool, int, tuple[int, bytes] | None]]


def everything(engine: Storage, workers: QueueWorkers) -> State:
    """All that can be read: ledger -> (entries, fenced, LAC, explicit LAC)."""
    state: State = {}
    for ledger_id in engine.ledgers():
        entries = {}
        for run in engine.entries(ledger_id):
            for entry_id in range(run.first, run.first + run.count):
                entry = read(engine, workers, ledger_id, entry_id)
                assert isinstance(entry, bytes), entry
                entries[entry_id] = entry
        state[ledger_id] = (entries, engine.is_fenced(ledger_id), engine.lac(ledger_id), engine.explicit_lac(ledger_id))
    return state


def violations(truth: Truth, at: int, engine: Storage, workers: QueueWorkers) -> list[str]:
    """What is not as it must be after a crash at operation ``at``."""
    bad: list[str] = []
    if engine.report.limbo_reason is not None:
        bad.append(f"false alarm: {engine.report.limbo_reason}")
    state = everything(engine, workers)
    for ledger_id, (entries, _, _, _) in state.items():
        if truth.gone.get(ledger_id, at + 1) <= at:
            bad.append(f"ledger {ledger_id} is back")
        for entry_id, entry in entries.items():
            if truth.sent.get((ledger_id, entry_id)) != entry:
                bad.append(f"invented entry {ledger_id}/{entry_id}")
    for (ledger_id, entry_id), when in truth.acked.items():
        if when <= at and truth.dropped.get(ledger_id, at + 1) > at:
            answer = read(engine, workers, ledger_id, entry_id)
            if answer != truth.sent[ledger_id, entry_id]:
                bad.append(f"acked entry {ledger_id}/{entry_id}: {answer!r}")
    for ledger_id, when in truth.fenced.items():
        if when <= at and not engine.is_fenced(lid(ledger_id)):
            bad.append(f"fence of {ledger_id} is gone")
    for ledger_id, (lac, when) in truth.lacs.items():
        if when <= at and truth.dropped.get(ledger_id, at + 1) > at:
            explicit = engine.explicit_lac(lid(ledger_id))
            if explicit is None or explicit[0] < lac or engine.lac(lid(ledger_id)) < lac:
                bad.append(f"explicit LAC of {ledger_id}: {explicit}")
    missing = read(engine, workers, 77, 0)
    if not isinstance(missing, (NoSuchLedgerError, NoSuchEntryError)):
        bad.append(f"a healthy disk says {missing!r} of a ledger that never was")
    return bad
