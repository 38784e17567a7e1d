"""The engine against a dict: whatever is done in whatever order, with restarts in between."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bookkeeper.errors import LedgerFencedError, NoSuchEntryError, NoSuchLedgerError
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    everything,
    lid,
    make_adds,
    make_entry,
    open_engine,
    read_batch,
)

LEDGERS = st.integers(1, 4)
SIZE = 90


class EngineMachine(RuleBasedStateMachine):
    """Entries are made from their ids, so the model is a set of them."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = RecordingDisk()
        self.config = replace(CONFIG, page_cache_pages=2)
        self.durable: set[tuple[int, int]] = set()
        self.maybe: set[tuple[int, int]] = set()
        """Accepted, not acknowledged."""
        self.fenced: set[int] = set()
        self.dropped: set[int] = set()

    @initialize(cached=st.booleans())
    def begin(self, cached: bool) -> None:
        self.engine, self.workers = open_engine(self.disk, self.config)
        self.disk.cached = cached

    @rule(
        ledger=LEDGERS,
        first=st.integers(0, 40) | st.sampled_from([500, 5000, 2**50]),
        steps=st.lists(st.sampled_from([1, 1, 1, 2, 3, 700]), max_size=12),
        recovery=st.booleans(),
    )
    def append(self, ledger: int, first: int, steps: list[int], recovery: bool) -> None:
        ids = [first]
        for step in steps:
            ids.append(ids[-1] + step)
        adds = make_adds(ledger, ids, SIZE)
        if ledger in self.dropped or (ledger in self.fenced and not recovery):
            with pytest.raises(LedgerFencedError):
                self.engine.append(adds.runs[0], adds, recovery=recovery)
            return
        self.engine.append(adds.runs[0], adds, recovery=recovery)
        keys = {(ledger, entry_id) for entry_id in ids}
        self.maybe |= keys
        self.engine.when_durable(lambda error: self.durable.update(keys) if error is None else None)

    @rule(ledger=LEDGERS)
    def fence(self, ledger: int) -> None:
        self.engine.fence(lid(ledger), KEY, lambda error: None)
        self.fenced.add(ledger)

    @rule()
    def step(self) -> None:
        self.workers.step()

    @rule()
    def checkpoint(self) -> None:
        self.engine.checkpoint(lambda error: None)

    @rule(ledger=LEDGERS)
    def collect(self, ledger: int) -> None:
        self.workers.pump()
        self.engine.collect([lid(ledger)], lambda error: None)
        self.workers.pump()
        if any(key[0] == ledger for key in self.maybe) or ledger in self.fenced:
            self.dropped.add(ledger)
        self.forget(ledger)

    def forget(self, ledger: int) -> None:
        self.maybe = {key for key in self.maybe if key[0] != ledger}
        self.durable = {key for key in self.durable if key[0] != ledger}

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.workers.pump()
        if clean:
            self.engine.close(lambda error: None)
            self.workers.pump()
        self.engine, self.workers = open_engine(self.disk, self.config)
        assert self.engine.report.clean is clean and self.engine.report.limbo_reason is None
        assert self.durable == self.maybe

    @rule(ledger=LEDGERS, entry_id=st.integers(0, 60), count=st.integers(1, 9))
    def batch(self, ledger: int, entry_id: int, count: int) -> None:
        wanted: list[bytes] = []
        while len(wanted) < count and (ledger, entry_id + len(wanted)) in self.maybe:
            wanted.append(make_entry(ledger, entry_id + len(wanted), size=SIZE))
        if wanted:
            got = read_batch(self.engine, self.workers, ledger, entry_id, count=count)
            assert got and got == wanted[: len(got)]
        else:
            with pytest.raises((NoSuchEntryError, NoSuchLedgerError)):
                read_batch(self.engine, self.workers, ledger, entry_id, count=count)

    @invariant()
    def everything_accepted_can_be_read(self) -> None:
        if not hasattr(self, "engine"):
            return
        for ledger in (1, 2, 3, 4):
            here = [entry_id for owner, entry_id in self.maybe if owner == ledger]
            assert self.engine.is_fenced(lid(ledger)) == (ledger in self.fenced or ledger in self.dropped)
            if not here:
                continue
            runs = self.engine.entries(lid(ledger))
            assert [run.first + at for run in runs for at in range(run.count)] == sorted(here)
            assert self.engine.last_entry(lid(ledger)) == max(here)
            assert self.engine.lac(lid(ledger)) >= max(here) - 1

    def teardown(self) -> None:
        self.workers.pump()
        found = everything(self.engine, self.workers)
        got = {(ledger, entry_id): entry for ledger, row in found.items() for entry_id, entry in row[0].items()}
        assert got == {key: make_entry(*key, size=SIZE) for key in self.maybe}


EngineMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestEngineAgainstADict = EngineMachine.TestCase


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=12), st.data())
def test_newer_places_win_through_freezing_and_merging(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    from array import array

    from bookkeeper.storage.index.entry_index import LedgerIndex

    index, model, value = LedgerIndex(), dict[int, int](), 1 << 40
    for first, count in runs:
        places = array("q", range(value, value + count))
        index.tail.extend(first, places)
        model.update(zip(range(first, first + count), places, strict=True))
        value += count
        action = data.draw(st.sampled_from(["go on", "freeze", "thaw"]))
        if action == "freeze" and index.frozen is None:
            index.freeze()
        elif action == "thaw":
            index.thaw()
    assert {entry_id: index.get_recent(entry_id) for entry_id in model} == model
    assert index.get_recent(10**6) == 0
