"""The blocking façade: the same client, from threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookkeeper import (
    AdvancedHandle,
    BookKeeper,
    ClientConfig,
    Operator,
    ReadHandle,
    WriteHandle,
    background_loop,
    sync,
)
from bookkeeper.errors import (
    DuplicateEntryError,
    IllegalOperationError,
    LedgerExistsError,
    LedgerFencedError,
    NoSuchLedgerError,
    UnauthorizedError,
)


@pytest.fixture(scope="module")
def bk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sync.BookKeeper]:
    directory: Path = tmp_path_factory.mktemp("sync")
    config = ClientConfig(
        bookie_stall_ms=60_000, add_timeout_ms=120_000
    )  # three bookies on one busy disk are slow in turns
    with sync.BookKeeper.connect(f"embedded://{directory}?bookies=3", config=config) as client:
        yield client


def test_write_close_read_from_a_plain_program(bk: sync.BookKeeper) -> None:
    with bk.create_ledger(password=b"pw") as ledger:
        assert ledger.append(b"zero") == 0
        assert ledger.append_many([b"one", b"two"]) == range(1, 3)
        assert ledger.append_nowait(b"three").result(10) == 3
        assert ledger.flush() == ledger.last_add_confirmed == 3
    assert ledger.closed and ledger.length == 15
    with bk.open_ledger(ledger.id, b"pw") as reader:
        assert reader.closed and reader.metadata.last_entry == 3
        assert [e.payload for e in reader.read(0, 3)] == [b"zero", b"one", b"two", b"three"]
        assert list(reader.tail(2)) == [(2, b"two"), (3, b"three")]
        assert reader.read_entry(1) == b"one"
    assert ledger.id in bk.list_ledgers()
    with pytest.raises(UnauthorizedError):
        bk.open_ledger(ledger.id, b"wrong")
    bk.delete_ledger(ledger.id)
    with pytest.raises(NoSuchLedgerError):
        bk.metadata(ledger.id)


@pytest.mark.rule("W11")
def test_what_was_written_is_forced_from_a_plain_program(bk: sync.BookKeeper) -> None:
    with bk.create_ledger(deferred_sync=True) as ledger:
        assert [ledger.append(b"one"), ledger.append(b"two")] == [0, 1]
        assert ledger.flush() == ledger.last_add_confirmed == -1
        assert ledger.force(timeout_s=30) == ledger.last_add_confirmed == 1
        ledger.append(b"three")
    assert bk.metadata(ledger.id).last_entry == 2
    dropped = bk.create_ledger(deferred_sync=True)
    dropped.append(b"never forced")
    dropped.close(force=False)
    assert bk.metadata(dropped.id).last_entry == -1


def test_ids_chosen_by_many_threads(bk: sync.BookKeeper) -> None:
    with bk.create_ledger(advanced=True, ledger_id=4711) as ledger, ThreadPoolExecutor(8) as threads:
        last = ledger.append_at_nowait(200, b"200")
        assert ledger.lowest_missing == 0
        ids = list(threads.map(lambda i: ledger.append_at(i, b"%d" % i, timeout_s=60), range(200)))
        assert (ids, last.result(60)) == (list(range(200)), 200)
        assert (ledger.pending_bytes, ledger.failed_bookies) == (0, ())
        with pytest.raises(DuplicateEntryError):
            ledger.append_at(7, b"again")
        with pytest.raises(IllegalOperationError):
            ledger.append(b"which id?")
        with pytest.raises(TimeoutError):
            ledger.append_at(300, b"above a gap", timeout_s=0.01)
    with bk.open_ledger(4711) as reader:
        assert [int(e.payload) for e in reader.read(0, 200)] == list(range(201))
    assert bk.exists(4711)
    with pytest.raises(LedgerExistsError, match="4711"):
        bk.create_ledger(ledger_id=4711)


def test_what_operators_ask_from_a_plain_program(bk: sync.BookKeeper) -> None:
    with bk.create_ledger(password=b"secret") as ledger:
        ledger.append_many([b"x"] * 5)
        ledger.force()  # on all three
    operator = sync.Operator(bk)
    assert operator.client is bk
    bookies = operator.writable_bookies()
    assert (len(bookies), operator.read_only_bookies(), operator.all_bookies()) == (3, [], bookies)
    assert (operator.bookie_info(bookies[0]).free or 0) > 0
    assert list(operator.entries_on(bookies[0], ledger.id).runs()) == [(0, 4)]
    with operator.open_ledger(ledger.id) as reader:
        assert reader.read_entry(4) == b"x"
    left_open = bk.create_ledger(password=b"secret")
    left_open.append(b"y")
    assert operator.recover_ledger(left_open.id).last_entry == 0
    assert operator.metadata(left_open.id).is_closed
    left_open.abandon()
    assert ledger.id in [ledger_id for ledger_id, _ in operator.ledgers_on(bookies[1])]
    assert {ledger.id, left_open.id} <= {ledger_id for ledger_id, _ in operator.all_metadata()}
    bk.delete_ledger(ledger.id, grace_s=1000)
    assert ledger.id in [each.ledger_id for each in operator.deleted_ledgers()]
    assert operator.undelete_ledger(ledger.id).last_entry == 4


def test_what_there_is_for_the_other_client_only_runs_over_there(bk: sync.BookKeeper) -> None:
    async def count(client: BookKeeper) -> int:
        return len([ledger_id async for ledger_id in client.list_ledgers()])

    assert bk.run(count) == len(bk.list_ledgers())
    with pytest.raises(TimeoutError):
        bk.run(lambda client: asyncio.sleep(60), timeout_s=0.01)


WITHOUT: dict[str, set[str]] = {
    "AdvancedHandle": {"fail", "refresh_metadata", "room"},
    "BookKeeper": {"metadata_store", "metrics", "over", "quiet_ledgers", "services", "start"},
    "Operator": set(),
    "ReadHandle": {"fail", "read_batches", "start", "tail_batches", "take_ready"},
    "WriteHandle": {"fail", "refresh_metadata", "room"},
}
"""What the blocking ones do not have: parts for tools, runs, what the client itself tells its handles, and waiting for
room, which a blocking append does."""


@pytest.mark.parametrize(
    "kind", [AdvancedHandle, BookKeeper, Operator, ReadHandle, WriteHandle], ids=lambda kind: kind.__name__
)
def test_the_blocking_client_offers_what_the_other_one_does(kind: type) -> None:
    def names(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert names(kind) - names(getattr(sync, kind.__name__)) == WITHOUT[kind.__name__]


def test_many_threads_append_to_one_ledger(bk: sync.BookKeeper) -> None:
    with bk.create_ledger() as ledger, ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(ledger.append, [b"%d" % i for i in range(200)]))
        assert sorted(ids) == list(range(200))
        with bk.open_ledger(ledger.id, recovery=False) as reader:
            assert sorted(int(e.payload) for e in reader.read(0, reader.read_last_add_confirmed())) == list(range(200))


def test_leaving_a_loop_over_entries_early_stops_the_reading(bk: sync.BookKeeper) -> None:
    with bk.create_ledger() as ledger:
        ledger.append_many([b"x"] * 100)
    with bk.open_ledger(ledger.id) as reader:
        for entry in reader.tail():
            if entry.entry_id == 10:
                break
        assert entry.entry_id == 10


def test_a_second_opener_fences_the_first_writer(bk: sync.BookKeeper) -> None:
    ledger = bk.create_ledger()
    ledger.append(b"kept")
    with bk.open_ledger(ledger.id) as reader:
        assert reader.last_add_confirmed == 0
    with pytest.raises(LedgerFencedError):
        ledger.append(b"late")
    ledger.abandon()


def test_a_blocking_call_on_the_loop_itself_is_refused_instead_of_hanging(bk: sync.BookKeeper) -> None:
    async def on_the_loop() -> None:
        bk.list_ledgers()

    with pytest.raises(IllegalOperationError, match="async interface"):
        background_loop.run(on_the_loop())


def test_an_iterator_that_is_collected_on_the_loop_itself_is_let_go_of(bk: sync.BookKeeper) -> None:
    with bk.create_ledger() as ledger:
        ledger.append_many([b"x"] * 10)
    with bk.open_ledger(ledger.id) as reader:
        entries = [reader.read(0, 9)]
        next(entries[0])

        async def collect() -> None:
            entries.clear()

        background_loop.run(collect())
        assert reader.read_entry(9) == b"x"


def test_long_polls_and_batches_from_a_plain_program(bk: sync.BookKeeper) -> None:
    with (
        bk.create_ledger() as ledger,
        bk.open_ledger(ledger.id, recovery=False) as reader,
        ThreadPoolExecutor(2) as threads,
    ):
        entry = threads.submit(reader.read_last_add_confirmed_and_entry, 0, timeout_ms=30_000)
        moved = threads.submit(reader.wait_last_add_confirmed, 1, timeout_ms=30_000)
        ledger.append_many([b"zero", b"one", b"two"])
        ledger.append(b"three")
        assert entry.result(30)[1] == (0, b"zero")
        assert moved.result(30) >= 2
        assert reader.read_last_add_confirmed() == 3
        assert [e.payload for e in reader.read_batch(1, count_max=2)] == [b"one", b"two"]
        assert reader.read_last_add_confirmed_and_entry(4, timeout_ms=1) == (3, None)
