"""The file ``placements`` as it is written, and when a record is durable."""

from __future__ import annotations

import errno
from random import Random

import pytest

from bookkeeper.errors import BookieFailedError, DiskFullError, MetadataUnavailableError, TooManyRequestsError
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes.map.ledger_map import PlacementRecord
from bookkeeper.volumes.map.placement_file import ROOM, decode_placements, encode_group, encode_record, offset_of
from bookkeeper.volumes.map.placement_log import PlacementLog, write_placements
from tests.bookkeeper.storage.recording_disk import QueueWorker, QueueWorkers, RecordingDisk, crash_images
from tests.bookkeeper.volumes.map.test_placement_file import ID, RECORD, RECORDS, placed

Answers = list[BaseException | None]


class Finishing(QueueWorker):
    """Does what was submitted before it ends."""

    def __init__(self, owner: QueueWorkers, name: str) -> None:
        super().__init__(owner, name)
        self._workers = owner

    def close(self) -> None:
        self._workers.pump()


# -- writing ----------------------------------------------------------------------------------------------


class Written:
    """A log on a disk that remembers everything; its worker works when told."""

    def __init__(self, records: list[PlacementRecord] | None = None, *, publishes: bool = True) -> None:
        self.disk, self.workers = RecordingDisk(), QueueWorkers()
        end = write_placements(self.disk, "/d", ID, 3, records or [])
        self.failures: list[BaseException] = []
        self.before = self.disk.files()
        self.disk.ops.clear()
        self.log = PlacementLog(self.disk, "/d", ID, end, self.workers.worker("p"), self.failures.append)
        self.answers: Answers = []
        self.asked = 0
        """How often it was asked to publish."""
        if publishes:
            self.log.published(end)
        self.log.publish_with(self.publish if publishes else self.ask)

    def ask(self) -> None:
        self.asked += 1

    def publish(self) -> None:
        """At once."""
        self.ask()
        self.log.published(self.log.end)

    def wait(self) -> None:
        self.log.when_durable(self.answers.append)

    @property
    def stored(self) -> list[PlacementRecord]:
        found = decode_placements(self.disk.files()["/d/placements"], ID, "x")
        assert found.damage is None
        return found.records

    @property
    def writes(self) -> list[tuple[str, int]]:
        return [(op.kind, len(op.data)) for op in self.disk.ops]


def test_a_new_file_has_the_records_and_is_durable() -> None:
    disk = SimDisk(Random(3))
    disk.make_directories("/d")
    assert write_placements(disk, "/d", ID, 3, iter(RECORDS)) == PlacementsEnd(3, len(RECORDS))
    disk.crash(keep=0.0)
    assert decode_placements(disk.read_file("/d/placements"), ID, "x").records == RECORDS


def test_nothing_to_write_is_durable_at_once() -> None:
    it = Written([placed(1)])
    assert it.log.is_durable
    it.wait()
    assert it.answers == [None] and it.workers.jobs == []


def test_a_record_is_answered_after_the_sync() -> None:
    it = Written([placed(1)])
    it.log.append(placed(2))
    durable = it.log.is_durable
    assert not durable and it.workers.jobs == [], "nobody waits"
    it.wait()
    assert it.answers == []
    it.workers.step()
    assert it.answers == [None] and it.log.is_durable
    assert it.writes == [("write", 2 * RECORD), ("sync", 0)], "the record and the end"
    assert it.stored == [placed(1), placed(2)]


def test_records_that_come_during_a_write_are_one_write() -> None:
    it = Written()
    it.log.append(placed(0))
    it.wait()
    for ledger in range(1, 20):
        it.log.append(placed(ledger))
        it.wait()
    assert len(it.workers.jobs) == 1
    it.workers.step()
    durable = it.log.is_durable
    assert it.answers == [None] and not durable
    it.workers.step()
    assert it.answers == [None] * 20 and it.log.is_durable
    assert it.writes == [("write", 2 * RECORD), ("sync", 0), ("write", 20 * RECORD), ("sync", 0)]
    assert it.stored == [placed(ledger) for ledger in range(20)]


def test_who_waits_during_a_write_waits_for_what_is_collected_too() -> None:
    it = Written()
    it.log.append(placed(0))
    it.wait()
    it.log.append(placed(1))
    it.wait()
    it.workers.step()
    assert it.answers == [None]
    it.workers.step()
    assert it.answers == [None, None]


def test_every_crash_leaves_what_was_answered_and_nothing_wrong() -> None:
    it = Written([placed(1)])
    answered: list[tuple[int, int]] = []
    for group in range(3):
        for at in range(9):
            it.log.append(placed(10 * group + at + 2))
        expected = 1 + 9 * (group + 1)
        it.log.when_durable(lambda error, n=expected: answered.append((len(it.disk.ops), n)))  # type: ignore[misc]
        it.workers.pump()
    for done, name, files in crash_images(it.before, it.disk.ops, Random(1), 40):
        found = decode_placements(files["/d/placements"], ID, "x")
        least = max((count for at, count in answered if at < done), default=1)
        assert len(found.records) >= least, (done, name)
        assert found.records[:least] == it.stored[:least]
        assert set(found.records) <= set(it.stored)


def test_without_space_the_records_are_written_later_at_the_same_place() -> None:
    it = Written([placed(1)])
    it.disk.faults[("write", "placements")] = OSError(errno.ENOSPC, "full")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.workers.step()
    (error,) = it.answers
    assert isinstance(error, DiskFullError) and "/d/placements cannot be written for now" in str(error)
    durable = it.log.is_durable
    assert it.failures == [] and it.log.failure is None and not durable
    it.log.append(placed(4))
    it.disk.faults.clear()
    it.wait()
    it.workers.pump()
    assert it.answers[1:] == [None] and it.log.is_durable and it.log.full is None
    assert it.stored == [placed(ledger) for ledger in (1, 2, 3, 4)]
    data = bytearray(it.disk.files()["/d/placements"])
    data[offset_of(1) + 20] ^= 1  # a power cut tore that write: its records are one group, whenever they came
    assert decode_placements(bytes(data), it.log.file_id, "placements").damage is None


def test_who_came_during_a_write_without_space_tries_again() -> None:
    it = Written()
    it.disk.faults[("write", "placements")] = OSError(errno.EDQUOT, "quota")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.wait()
    it.workers.step()
    it.disk.faults.clear()
    it.workers.pump()
    assert isinstance(it.answers[0], DiskFullError) and it.answers[1:] == [None]
    assert it.stored == [placed(2), placed(3)]


@pytest.mark.parametrize(("call", "code"), [("sync", errno.EIO), ("sync", errno.ENOSPC), ("write", errno.EIO)])
def test_a_failure_is_final_and_told_once(call: str, code: int) -> None:
    """Also "no space" from a sync: what was written before it is lost (K23)."""
    it = Written()
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.wait()
    it.disk.faults[(call, "placements")] = OSError(code, "bad")
    it.workers.step()
    it.disk.faults.clear()
    assert it.workers.jobs == []
    assert len(it.failures) == 1 and isinstance(it.failures[0], BookieFailedError)
    assert "/d/placements could not be written" in str(it.failures[0])
    assert it.answers == [it.failures[0]] * 2
    it.log.append(placed(4))
    it.wait()
    it.workers.pump()
    assert it.answers == [it.failures[0]] * 3 and len(it.failures) == 1
    it.log.close()
    assert it.workers.jobs == []


def test_a_file_that_cannot_be_opened_is_final() -> None:
    it = Written()
    it.disk.faults[("open", "placements")] = OSError(errno.EIO, "bad")
    it.log.append(placed(2))
    it.wait()
    it.workers.pump()
    assert isinstance(it.answers[0], BookieFailedError) and len(it.failures) == 1


def test_closing_writes_what_is_collected() -> None:
    it = Written()
    it.log.append(placed(2))
    it.log.close()
    it.workers.pump()
    assert it.stored == [placed(2)]


def test_closing_an_idle_log_closes_its_file() -> None:
    it = Written()
    it.log.append(placed(2))
    it.wait()
    it.workers.pump()
    it.log.close()
    assert it.disk.left_open == []


def test_a_log_that_is_closed_during_a_write_lets_its_file_go() -> None:
    it = Written()
    it.log.worker = Finishing(it.workers, "p")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.log.close()
    assert it.answers == [None] and it.disk.left_open == []
    assert it.stored[:1] == [placed(2)]


def test_records_of_one_write_say_so() -> None:
    it = Written([placed(1)])
    for ledger in (2, 3, 4):
        it.log.append(placed(ledger))
    it.wait()
    it.workers.pump()
    data = it.disk.files()["/d/placements"]
    group = encode_group([placed(ledger) for ledger in (2, 3, 4)], 1, ID)
    assert data[offset_of(1) : offset_of(5)] == group
    assert group[:RECORD] == encode_record(placed(2), 1, ID, 0)
    assert not any(data[offset_of(5) :]) and len(data) == offset_of(2) + ROOM


# -- publication ------------------------------------------------------------------------------------------


@pytest.mark.rule("K35", "K32")
def test_a_record_is_answered_after_the_publication_of_its_end() -> None:
    """Cause: the file alone said where it ends, and a file that is cut at a record's border is a good file, too."""
    it = Written(publishes=False)
    it.log.published(it.log.end)
    it.log.append(placed(1))
    it.wait()
    assert it.asked == 0, "nothing is stored yet"
    it.workers.step()
    assert it.answers == [] and it.asked == 1 and it.log.end == PlacementsEnd(3, 1)
    it.log.published(PlacementsEnd(3, 0))
    assert it.answers == [] and it.asked == 2, "that was older"
    it.log.published(PlacementsEnd(3, 1))
    assert it.answers == [None] and it.log.is_durable


@pytest.mark.rule("K35")
def test_one_publication_serves_all_that_were_stored_before_it() -> None:
    it = Written(publishes=False)
    for ledger in range(60):
        it.log.append(placed(ledger))
        it.wait()
        if ledger % 20 == 0:
            it.workers.step()
    it.workers.pump()
    assert it.answers == [] and it.log.end.count == 60
    it.log.published(PlacementsEnd(3, 41))
    assert it.answers == [None] * 41
    it.log.published(it.log.end)
    assert it.answers == [None] * 60


def test_before_anybody_publishes_it_is_waited_for() -> None:
    it = Written([placed(1)], publishes=False)
    log = PlacementLog(it.disk, "/d", ID, it.log.end, it.workers.worker("q"), it.failures.append)
    log.when_durable(it.answers.append)
    assert it.answers == [] and not log.is_durable, "what a start finds is published by that start"
    log.publish_with(lambda: log.published(log.end))
    assert it.answers == [None] and log.is_durable


def test_what_is_stored_can_be_waited_for_by_itself() -> None:
    it = Written(publishes=False)
    it.log.append(placed(1))
    stored: Answers = []
    it.log.when_stored(stored.append)
    it.workers.pump()
    assert stored == [None] and it.answers == [] and it.asked == 0
    it.log.when_stored(stored.append)
    assert stored == [None, None]


def test_while_it_cannot_be_published_new_places_are_refused_and_those_who_wait_are_told() -> None:
    it = Written(publishes=False)
    it.log.published(it.log.end)
    it.log.refuse_if_behind(recovery=False)
    it.log.append(placed(1))
    it.wait()
    it.workers.step()
    it.log.append(placed(2))
    it.wait()
    it.log.not_published(MetadataUnavailableError("the store is away"))
    (error,) = it.answers
    assert isinstance(error, TooManyRequestsError) and error.retryable
    assert str(error) == (
        "on which ledger directory new ledgers are cannot be published for now: the store is away; send it again later"
    )
    it.log.refuse_if_behind(recovery=True)
    asked = it.asked
    with pytest.raises(TooManyRequestsError):
        it.log.refuse_if_behind(recovery=False)
    assert it.asked == asked + 1, "it is tried again"
    it.workers.step()
    it.log.published(it.log.end)
    assert it.answers[1:] == [None] and it.log.is_durable and it.failures == []
    it.log.refuse_if_behind(recovery=False)


def test_a_process_that_was_superseded_fails() -> None:
    it = Written(publishes=False)
    it.log.append(placed(1))
    it.wait()
    it.workers.step()
    it.log.not_published(MetadataUnavailableError("another process"), final=True)
    assert it.answers == it.failures and isinstance(it.failures[0], BookieFailedError)
    assert "cannot be published: another process" in str(it.failures[0])


# -- the room behind the end ------------------------------------------------------------------------------


def filled_up(capacity: int) -> tuple[SimDisk, QueueWorkers, PlacementLog]:
    """A log on a disk that has so many bytes left."""
    disk, workers = SimDisk(Random(3)), QueueWorkers()
    disk.make_directories("/d")
    end = write_placements(disk, "/d", ID, 3, ())
    disk.capacity = disk.used() + capacity
    log = PlacementLog(disk, "/d", ID, end, workers.worker("p"), lambda error: None)
    log.publish_with(lambda: log.published(log.end))
    return disk, workers, log


def acked(log: PlacementLog, workers: QueueWorkers, ledger: int) -> BaseException | None:
    answers: Answers = []
    log.append(placed(ledger))
    log.when_durable(answers.append)
    workers.pump()
    assert len(answers) == 1
    return answers[0]


@pytest.mark.rule("K26")
def test_without_space_what_a_recovery_needs_goes_into_the_room_that_was_kept() -> None:
    """Cause: the file grew with each record, and nothing of it was kept for fences and recovery adds."""
    disk, workers, log = filled_up(0)
    ledger = 0
    while log.full is None:
        log.refuse_if_behind(recovery=False)
        assert acked(log, workers, ledger) is None
        ledger += 1
    with pytest.raises(DiskFullError, match="placements cannot be written for now"):
        log.refuse_if_behind(recovery=False)
    for _ in range(1000):
        log.refuse_if_behind(recovery=True)
        assert acked(log, workers, ledger) is None
        ledger += 1
    taken = ledger
    while (error := acked(log, workers, ledger)) is None:
        ledger += 1
    assert isinstance(error, DiskFullError) and ledger > taken
    found = decode_placements(disk.read_file("/d/placements"), ID, "x")
    assert found.end.count == log.end.count == ledger and found.ended
    with pytest.raises(DiskFullError):
        for more in range(10_000):  # what waits in memory is bounded
            log.refuse_if_behind(recovery=True)
            log.append(placed(ledger + 1 + more))
    disk.capacity += 10 * ROOM
    log.catch_up()
    workers.pump()
    log.refuse_if_behind(recovery=False)
    assert acked(log, workers, 10**9) is None and log.is_durable


@pytest.mark.rule("K26")
def test_a_large_group_leaves_what_fits() -> None:
    disk, workers, log = filled_up(0)
    answers: Answers = []
    for ledger in range(4000):  # more than the room
        log.append(placed(ledger))
        log.when_durable(answers.append)
    workers.pump()
    assert len(answers) == 4000
    told = [error for error in answers if error is not None]
    assert told and all(isinstance(error, DiskFullError) for error in told)
    log.when_durable(answers.append)
    workers.pump()
    assert isinstance(answers[-1], DiskFullError)
    assert 2000 < log.end.count < 4000, "one more look has stored what fits"
    disk.capacity += 10 * ROOM
    log.when_durable(answers.append)
    workers.pump()
    assert answers[-1:] == [None] and log.end == PlacementsEnd(3, 4000)
    stored = decode_placements(disk.read_file("/d/placements"), ID, "x").records
    assert stored == [placed(ledger) for ledger in range(4000)]


def test_the_room_is_made_again_before_it_is_used_up() -> None:
    disk, workers, log = filled_up(1 << 30)
    for ledger in range(3000):
        assert acked(log, workers, ledger) is None
        assert len(disk.read_file("/d/placements")) - offset_of(log.end.count + 1) >= ROOM // 2 or ledger == 0
