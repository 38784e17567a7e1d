"""What of an entry log need not be read to know that it came from groups that were replayed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper.codec import record
from bookkeeper.seams import File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.entry_log.entry_log_file import create_log
from bookkeeper.storage.start.replayed_groups import ReplayedGroups
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, PER_LEDGER, Life, make_entry, open_engine, read

GROUPS = [record(make_entry(1, at, size=60 + 9 * at)) for at in range(6)]
MARK = 10
"""The groups are 11 to 16."""


def replayed(count: int = 6, *, without: int | None = None, empty: int | None = None) -> ReplayedGroups:
    """The first groups, as a start has put them into a log of its own."""
    copy = create_log(RecordingDisk(), "/new", 9, 7, 3, first_group=MARK + 1)

    def read(log_id: int, size: int, offset: int) -> bytes:
        assert log_id == 9
        return copy.pread(size, offset)

    groups, offset = ReplayedGroups(MARK, read), BLOCK
    for at, data in enumerate(GROUPS[:count]):
        if at == without:
            continue
        if at == empty:
            groups.add(MARK + 1 + at, 0, 0, 0)
            continue
        copy.pwrite(data, offset)
        groups.add(MARK + 1 + at, len(data), 9, offset)
        offset += len(data)
    return groups


def log_of(first: int, *groups: bytes, log_id: int = 4) -> File:
    file = create_log(RecordingDisk(), "/d", log_id, 7, 3, first_group=first)
    file.pwrite(b"".join(groups), BLOCK)
    return file


def size_of(*groups: bytes) -> int:
    return len(b"".join(groups))


@pytest.mark.rule("K9", "K33")
def test_a_log_of_replayed_groups_is_known_to_its_end() -> None:
    file = log_of(MARK + 1, *GROUPS)
    assert replayed().known_below(file, 4, BLOCK, named=False) == file.size()
    file = log_of(MARK + 3, *GROUPS[2:])
    assert replayed().known_below(file, 4, BLOCK, named=False) == file.size()


@pytest.mark.rule("K9", "K33")
def test_what_lies_behind_the_last_replayed_group_is_not_known() -> None:
    file = log_of(MARK + 1, *GROUPS)
    assert replayed(4).known_below(file, 4, BLOCK, named=False) == BLOCK + size_of(*GROUPS[:4])
    file = log_of(MARK + 1, *GROUPS[:3], GROUPS[3][:5])
    assert replayed().known_below(file, 4, BLOCK, named=False) == BLOCK + size_of(*GROUPS[:3]), "a write that was cut"


@pytest.mark.rule("K9", "K33")
def test_a_log_that_the_manifest_names_goes_on_behind_the_mark() -> None:
    covered = b"covered" * 9
    begin = BLOCK + len(covered)
    for first in (1, MARK - 2, MARK):
        file = log_of(first, covered, *GROUPS)
        assert replayed(5).known_below(file, 4, begin, named=True) == begin + size_of(*GROUPS[:5])
    for first in (0, MARK + 1):
        file = log_of(first, covered, *GROUPS)
        assert replayed().known_below(file, 4, begin, named=True) == begin, "the header and the manifest disagree"


@pytest.mark.rule("K9", "K33")
def test_groups_without_records_take_no_room() -> None:
    for empty in (0, 3, 5):
        left = GROUPS[:empty] + GROUPS[empty + 1 :]
        file = log_of(MARK + 1 + (empty == 0), *left)
        assert replayed(empty=empty).known_below(file, 4, BLOCK, named=False) == file.size()


@pytest.mark.rule("K9")
@pytest.mark.parametrize(
    "file",
    [
        lambda: log_of(0, *GROUPS),
        lambda: log_of(MARK, *GROUPS),
        lambda: log_of(MARK + 7, *GROUPS),
        lambda: log_of(MARK + 1, *GROUPS, log_id=5),
        lambda: log_of(MARK + 1),
        lambda: log_of(MARK + 1, GROUPS[0][:-1]),
        lambda: log_of(MARK + 2, *GROUPS),
        lambda: log_of(MARK + 1, *GROUPS[:5], bytes(len(GROUPS[5]))),
    ],
    ids=[
        "it does not say where it begins",
        "it begins before the mark",
        "it begins with a group that was not replayed",
        "it is another log",
        "it is empty",
        "it has no whole group",
        "it holds other groups than it says",
        "its last group is gone",
    ],
)
def test_in_doubt_a_log_is_read_from_its_beginning(file: Callable[[], File]) -> None:
    assert replayed().known_below(file(), 4, BLOCK, named=False) == BLOCK


@pytest.mark.rule("K9")
def test_behind_a_gap_nothing_is_known_without_reading() -> None:
    file = log_of(MARK + 1, *GROUPS)
    for without in (0, 3):
        assert replayed(without=without).known_below(file, 4, BLOCK, named=False) == BLOCK


@pytest.mark.rule("K9")
def test_behind_a_gap_groups_that_look_alike_are_no_others() -> None:
    """The one that is missing is passed over by its size, and what came again lies where it would be the same."""
    alike = [record(make_entry(1, at, size=60)) for at in (0, 1, 2, 3, 4, 3)]
    groups, copy = ReplayedGroups(MARK, lambda _log, size, offset: copy.pread(size, offset)), log_of(0, *alike)
    for at, data in enumerate(alike):
        if at != 2:
            groups.add(MARK + 1 + at, len(data), 9, BLOCK + at * len(data))
    file = log_of(MARK + 1, *alike)
    assert groups.known_below(file, 4, BLOCK, named=False) == BLOCK


ONE_LOG = replace(CONFIG, journal_file_bytes=1 << 18)
"""All of the journal is in one file, so that its end can be lost without a gap."""
LOG_PER_LEDGER = replace(PER_LEDGER, journal_file_bytes=1 << 18)


def some_life(rng: random.Random, config: StorageConfig) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """(the files at some moment, the files at the end): small logs, entries sent again, checkpoints on the way."""
    life = Life(RecordingDisk(), config)
    steps = rng.randrange(4, 24)
    moment, following, earlier = rng.randrange(steps), dict.fromkeys((1, 2, 3), 0), dict[str, bytes]()
    for step in range(steps):
        if step == moment:
            earlier = life.disk.files()
        for ledger_id in rng.sample((1, 2, 3), rng.randrange(1, 4)):
            first = following[ledger_id]
            if first and rng.random() < 0.3:
                first = rng.randrange(first)  # sent again
            entry_ids = range(first, first + rng.randrange(1, 4))
            life.add(ledger_id, *entry_ids, size=300)
            following[ledger_id] = max(following[ledger_id], entry_ids.stop)
        life.pump()
        if rng.random() < 0.15:
            life.checkpoint()
            life.pump()
    return earlier, life.disk.files()


def lose(rng: random.Random, files: dict[str, bytes], earlier: dict[str, bytes]) -> dict[str, bytes]:
    """What a power cut, rot or an older copy may make of them: of the journal, of the logs, or of both."""
    if rng.random() < 0.6:
        files = {name: earlier.get(name, data) if "/journal/" in name else data for name, data in files.items()}
    logs = [name for name in sorted(files) if name.endswith(".log")]
    if logs and rng.random() < 0.5:
        name = rng.choice(logs)
        data = bytearray(files[name])
        at = rng.randrange(len(data))
        data[at : at + rng.choice((1, 512, 4096))] = b""
        files[name] = bytes(data).ljust(len(files[name]), b"\0") if rng.random() < 0.7 else bytes(data)
    return files


def started(files: dict[str, bytes], config: StorageConfig) -> tuple[str | None, list[str], list[str]]:
    """What a start says is missing, what it says is damaged, and what it answers to reads."""
    engine, workers = open_engine(RecordingDisk(files), config)
    answers = [repr(read(engine, workers, ledger_id, entry_id)) for ledger_id in (1, 2, 3) for entry_id in range(40)]
    return engine.report.limbo_reason, engine.report.quarantined, answers


@pytest.mark.rule("K9", "K17", "K33")
@pytest.mark.parametrize(
    "config", [ONE_LOG, CONFIG, LOG_PER_LEDGER], ids=["one log", "short files", "a log per ledger"]
)
def test_reading_less_changes_no_verdict(config: StorageConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same start with every log read to its end says the same of what is lost, and has the same entries."""
    less = losses = 0

    def counted(self: ReplayedGroups, file: File, log_id: int, begin: int, *, named: bool) -> int:
        nonlocal less
        found = original(self, file, log_id, begin, named=named)
        less += found > begin
        return found

    original = ReplayedGroups.known_below
    for seed in range(60):
        rng = random.Random(seed)
        earlier, files = some_life(rng, config)
        files = lose(rng, files, earlier)
        monkeypatch.setattr(ReplayedGroups, "known_below", counted)
        short = started(files, config)
        monkeypatch.setattr(ReplayedGroups, "known_below", lambda self, file, log_id, begin, *, named: begin)
        assert short == started(files, config), seed
        losses += short[0] is not None
    assert losses > 10, "some of them have lost something"
    assert config.entry_log_per_ledger or less > 30, "most logs were not read"
