"""Everything that a bookie may forget is noticed: a bookie that is a dict answers, and then forgets one thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Status
from tests.power_cuts.promises import KEY, Promised, Promises, entry, explicit_lac

LEDGER, EMPTY, GONE, DELETED = LedgerId(1), LedgerId(2), LedgerId(3), LedgerId(4)


@dataclass
class DictBookie:
    entries: dict[tuple[int, int], bytes] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    fenced: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    lacs: dict[int, bytes] = field(default_factory=dict)
    checks_keys: bool = True
    missing: Status = Status.NO_ENTRY

    async def ask(self, request: wire.Request) -> Any:
        match request:
            case wire.ReadEntry(ledger_id=ledger_id, entry_id=at):
                if ledger_id not in self.known:
                    return wire.failure(request, Status.NO_LEDGER)
                found = self.entries.get((ledger_id, at))
                return wire.ReadReply(self.missing if found is None else Status.OK, ledger_id, at, found)
            case wire.AddEntry(ledger_id=ledger_id, entry_id=at, master_key=key):
                if self.checks_keys and ledger_id not in self.gone and key != KEY:
                    return wire.failure(request, Status.UNAUTHORIZED)
                return wire.AddReply(
                    Status.FENCED if ledger_id in self.fenced | self.gone else Status.OK, ledger_id, at
                )
            case wire.ReadLac(ledger_id=ledger_id):
                return wire.LacReply(Status.OK, ledger_id, self.lacs.get(ledger_id))
        raise AssertionError(request)


def told() -> tuple[Promises, DictBookie]:
    promises, bookie = Promises(), DictBookie()
    promises.ledgers = {
        LEDGER: Promised(sent=5, acked={0, 1, 2}, deferred={3}, fence_asked=True, fenced=True, lac=2),
        EMPTY: Promised(),
        GONE: Promised(sent=1, acked={0}, deleted=True, collected=True),
        DELETED: Promised(sent=1, acked={0}, deleted=True),
    }
    bookie.entries = {(LEDGER, at): entry(LEDGER, at) for at in (0, 1, 2, 4)}
    bookie.known, bookie.fenced, bookie.gone = {LEDGER}, {LEDGER}, {GONE, DELETED}
    bookie.lacs = {LEDGER: explicit_lac(LEDGER, 2).body}
    return promises, bookie


async def test_what_was_not_promised_may_be_there_or_not() -> None:
    promises, bookie = told()
    counts = Counter[str]()
    assert await promises.check(bookie.ask, counts) == []
    assert counts == {"entries": 3, "fences": 1, "explicit LACs": 1, "collected ledgers": 1}


def there(bookie: DictBookie, ledger_id: LedgerId, data: bytes) -> None:
    bookie.known.add(ledger_id)
    bookie.entries[ledger_id, 0] = data


FORGOTTEN: dict[str, Callable[[DictBookie], object]] = {
    "was acknowledged, and is answered with NO_ENTRY": lambda bookie: bookie.entries.pop((LEDGER, 1)),
    "has other bytes": lambda bookie: bookie.entries.update({(LEDGER, 4): entry(LEDGER, 3)}),
    "is there, and was never sent": lambda bookie: bookie.entries.update({(LEDGER, 5): entry(LEDGER, 5)}),
    "was acknowledged, and is answered with NO_LEDGER": lambda bookie: bookie.known.clear(),
    "is not acknowledged": lambda bookie: setattr(bookie, "missing", Status.UNKNOWN_STATE),
    "is fenced, and answers an add with OK": lambda bookie: bookie.fenced.clear(),
    "answers another key with FENCED": lambda bookie: setattr(bookie, "checks_keys", False),
    "has the explicit LAC -1, and 2 was acknowledged": lambda bookie: bookie.lacs.clear(),
    "was collected, and answers an add with OK": lambda bookie: bookie.gone.clear(),
    "was collected, and answers a read with OK": lambda bookie: there(bookie, GONE, entry(GONE, 0)),
    "of the deleted ledger 4 has other bytes": lambda bookie: there(bookie, DELETED, entry(LEDGER, 0)),
}


@pytest.mark.parametrize("sentence", FORGOTTEN)
async def test_whatever_is_forgotten_is_noticed(sentence: str) -> None:
    promises, bookie = told()
    FORGOTTEN[sentence](bookie)
    wrong = await promises.check(bookie.ask, Counter())
    assert any(sentence.replace("is not acknowledged", "was not acknowledged") in each for each in wrong), wrong


async def test_what_was_deferred_is_promised_by_a_force_alone() -> None:
    promises, bookie = told()
    promises.power_lost()
    assert await promises.check(bookie.ask, Counter()) == []
    promises.ledgers[LEDGER].acked.add(3)
    assert len(await promises.check(bookie.ask, Counter())) == 1


def test_entries_differ() -> None:
    assert len({entry(ledger, at) for ledger in range(20) for at in range(20)}) == 400
    assert any(len(entry(1, at)) > 30_000 for at in range(200))
    assert entry(7, 9)[8:16] == EntryId(9).to_bytes(8, "big")
