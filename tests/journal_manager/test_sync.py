"""Edit logs for threads: the same calls, the same errors, and groups of many threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import journal_manager
from bookkeeper.background_loop import run
from bookkeeper.errors import IllegalOperationError
from journal_manager import (
    JournalClosedError,
    JournalExistsError,
    JournalFencedError,
    JournalGapError,
    NotActiveError,
    Op,
    OpTooLargeError,
    ReplicaRole,
    RequestId,
    TxId,
    sync,
)
from journal_manager.errors import RequestForgottenError


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"file://{tmp_path}/edits"


def test_a_plain_program_logs_reads_and_keeps_snapshots(uri: str) -> None:
    with sync.EditLog.open(uri, owner="me") as log:
        assert (log.log(b"1"), log.log_group([(1, b"2"), (2, b"3")])) == (1, 3)
        waiting = [log.log_nowait(b"%d" % number) for number in (4, 5)]
        assert [future.result() for future in waiting] == [4, 5]
        assert (log.sync(), log.durable_txid, log.next_txid, log.token.owner) == (5, 5, 6, "me")
        assert log.save_snapshot(5, [b"the ", b"state"]).size == 9
        final = log.roll()
        assert final is not None and (final.first, final.last) == (1, 5)
        log.log(b"6")
        assert [op.body for op in log.read(4)] == [b"4", b"5", b"6"]
        assert [[op.txid for op in run] for run in log.read_runs(4)][-1] == [6]
        log.ensure_owner()
        assert len(log.segments()) == 2 and log.purge(2) == () and log.failure is None
        with pytest.raises(OpTooLargeError):
            log.log(bytes(2 << 20))
    with sync.open_reader(uri) as reader, sync.open_snapshots(uri) as store:
        assert [op.txid for op in reader.read(1, 3)] == [1, 2, 3]
        assert [(s.first, s.last) for s in reader.segments()] == [(1, 5), (6, 6)]
        with pytest.raises(JournalGapError):
            list(reader.read(9))
        assert [info.at for info in store.list()] == [5]
        assert b"".join(store.read(5)) == b"the state"
        loaded = store.load()
        assert loaded is not None and loaded[1] == b"the state"
        store.offer(6, [b"offered"])
    with sync.EditLog.open(uri) as log:
        assert log.recovery.last_txid == 6
        assert [info.at for info in log.adopt_snapshots()] == [6]
        log.delete_snapshot(5)
    assert sync.has_data(uri)
    with pytest.raises(JournalExistsError):
        sync.format_journal(uri)
    sync.format_journal(uri, force=True)
    assert not sync.has_data(uri)


def test_many_edits_cross_in_runs_and_stay_in_order(uri: str) -> None:
    with sync.EditLog.open(uri) as log:
        log.log_group([(1, b"%d" % number) for number in range(1, 1301)])
        assert [op.body for op in log.read(1)] == [b"%d" % number for number in range(1, 1301)]
        reading = log.read(1)
        assert next(reading).txid == 1
        reading.close()  # type: ignore[attr-defined]


def test_threads_share_a_log_and_each_gets_its_own_id(uri: str) -> None:
    with sync.EditLog.open(uri) as log, ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(lambda number: log.log(b"%d" % number), range(64)))
        assert sorted(ids) == list(range(1, 65))
        assert {op.body: op.txid for op in log.read(1)} == {b"%d" % number: txid for number, txid in enumerate(ids)}


def test_a_tail_waits_for_the_next_edit(uri: str) -> None:
    with sync.EditLog.open(uri) as log, sync.open_reader(uri) as reader, ThreadPoolExecutor(1) as threads:
        log.log(b"1")
        following = reader.tail(1)
        assert next(following).body == b"1"
        second = threads.submit(next, following)
        log.log(b"2")
        assert second.result(30).body == b"2"
        following.close()  # type: ignore[attr-defined]
        reader.changed(0.01)


def test_errors_are_those_of_the_async_interface(uri: str) -> None:
    old = sync.EditLog.open(uri)
    new = sync.EditLog.open(uri)
    with pytest.raises(JournalFencedError):
        old.log(b"late")
    assert isinstance(old.failure, JournalFencedError)
    old.abort()
    new.close()
    new.close()
    with pytest.raises(JournalClosedError):
        new.log(b"closed")


def test_a_blocking_call_on_the_loop_itself_is_refused(uri: str) -> None:
    async def on_the_loop() -> None:
        sync.has_data(uri)

    with pytest.raises(IllegalOperationError, match="async interface"):
        run(on_the_loop())


def test_the_example_of_the_page_runs_as_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "journals.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0].replace("/tmp/edits", f"{tmp_path}/edits")
    for _ in range(4):
        exec(compile(example, "docs/journals.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "4 b'an edit; an edit; an edit; an edit; '"


def test_every_method_of_the_async_log_is_there() -> None:
    ours = {name for name in dir(sync.EditLog) if not name.startswith("_")}
    theirs = {name for name in dir(journal_manager.EditLog) if not name.startswith("_")}
    assert theirs - ours == {"ensure_loggable", "room", "wait_failed"}


class Words:
    """A plain program without asyncio."""

    def __init__(self) -> None:
        self.words: list[bytes] = []

    def apply(self, op: Op) -> bytes:
        if op.body in self.words:
            raise KeyError(op.body)
        self.words.append(op.body)
        return b"%d" % len(self.words)

    def snapshot(self) -> Iterator[bytes]:
        yield b" ".join(self.words)

    def restore(self, chunks: Iterator[bytes]) -> None:
        self.words = b"".join(chunks).split()


def test_a_plain_program_is_replicated(uri: str) -> None:
    first, second = Words(), Words()
    with sync.replicated(uri, first, name="first") as replica:
        replica.wait_until_active(10)
        replica.wait_until_active(0)  # it is active: there is nothing to wait for
        request = RequestId(b"client", 1)
        answer = replica.submit(b"one", request=request)
        assert (answer.txid, answer.result) == (1, b"1")
        assert replica.submit(b"again", request=request) == answer
        with pytest.raises(RequestForgottenError):
            replica.submit(b"late", request=RequestId(b"odd", 1), since=TxId(9))
        assert replica.read(lambda: list(first.words)) == [b"one"]
        with pytest.raises(KeyError):
            replica.submit(b"one")
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(replica.submit, [b"a", b"b", b"c", b"d"]))
        with sync.replicated(uri, second, name="second") as standby:
            with pytest.raises(NotActiveError):
                standby.submit(b"no")
            with pytest.raises(TimeoutError):
                standby.wait_until_active(0.1)
        taken = replica.checkpoint()
        assert taken is not None and taken.at == replica.applied == 5
        assert (replica.role, replica.status().name) == (ReplicaRole.ACTIVE, "first")
    replica.close()
    with sync.replicated(uri, second, name="second") as replica:
        replica.wait_until_active(10)
        assert replica.read(lambda: sorted(second.words)) == sorted(first.words)
        assert replica.status().newest_snapshot == 5


def test_every_method_of_the_async_replica_is_there() -> None:
    ours = {name for name in dir(sync.ReplicatedProgram) if not name.startswith("_")}
    theirs = {name for name in dir(journal_manager.ReplicatedProgram) if not name.startswith("_")}
    assert theirs - ours == {"start"}
