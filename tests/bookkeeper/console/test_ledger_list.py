"""All ledgers in memory: which are found, and what a page of them costs."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from bookkeeper.console.blocks import ROWS, PageAddress
from bookkeeper.console.ledger_list import LedgerFilter, LedgerList, ledger_row
from bookkeeper.console.picture import LedgersPicture
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.templates import html
from bookkeeper.console.views.ledgers_view import ledgers_page
from bookkeeper.console.views.view import ViewRequest
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
UP = frozenset(BookieId(f"b{n}") for n in range(1, 6))


def metadata(number: int) -> LedgerMetadata:
    """Bookie b6 is absent: each twelfth ledger names it; each tenth is open."""
    names = ["b6" if number % 12 == 0 else "b1", f"b{2 + number % 2}", f"b{4 + number % 2}"]
    made = LedgerMetadata.create(SPEC, [BookieId(name) for name in names], ctime_ms=1_700_000_000_000)
    return made if number % 10 == 0 else made.close(number % 7, 100)


SHAPES = [metadata(number) for number in range(420)]


def listed(count: int) -> LedgerList:
    found = LedgerList()
    for number in range(count):
        found.add(ledger_row(LedgerId(number), SHAPES[number % 420], UP, {}))
    return found


@pytest.fixture(scope="module")
def some() -> LedgerList:
    found = listed(500)
    found.add(ledger_row(LedgerId(1000), MetadataFormatError("damaged"), UP, {}))
    return found.seal([LedgerId(3), LedgerId(12), LedgerId(77)])


@pytest.mark.parametrize("health", ["", "well", "short", "lost", "unreadable", "marked", "none"])
@pytest.mark.parametrize("state", ["", "open", "closed", "unreadable"])
@pytest.mark.parametrize("bookie", ["", "b3", "b6", "b9"])
def test_what_is_found_is_what_going_through_all_finds(some: LedgerList, state: str, health: str, bookie: str) -> None:
    every = some.select(LedgerFilter(), 0, 10_000, newest_first=False).rows
    wanted = [
        row.ledger_id
        for row in every
        if state in ("", row.state)
        and (health in ("", row.health) or (health == "marked" and row.ledger_id in (3, 12, 77)))
        and (not bookie or bookie in row.bookies)
    ]
    found = some.select(LedgerFilter(state, health, bookie), 0, 10_000, newest_first=False)
    assert [row.ledger_id for row in found.rows] == wanted and found.total == len(wanted)
    turned = some.select(LedgerFilter(state, health, bookie), 0, 10_000)
    assert [row.ledger_id for row in turned.rows] == wanted[::-1]


def test_counts_and_the_reason_of_one_that_cannot_be_read(some: LedgerList) -> None:
    assert len(some) == 501 and sum(some.states.values()) == 501
    assert some.healths["marked"] == 3 and some.healths["unreadable"] == 1
    assert some.on_bookie("b6") == some.select(LedgerFilter(bookie="b6"), 0, 1).total > 0
    (row,) = some.select(LedgerFilter(health="unreadable"), 0, 5).rows
    assert row.problem == "damaged" and row.ledger_id == 1000


def test_pages_are_cut_without_gaps(some: LedgerList) -> None:
    seen: list[Any] = []
    for at in range(6):
        seen += some.select(LedgerFilter(), at, 100).rows
    assert [row.ledger_id for row in seen] == [1000, *range(499, -1, -1)]
    beyond = some.select(LedgerFilter(), 99, 100)
    assert [row.ledger_id for row in beyond.rows] == [0]


def calls_of_a_page(found: LedgerList, **params: str) -> int:
    """How many functions of Python a page calls."""
    kept = CachedValue(LedgersPicture(found, (), ()), 1, 0.0)
    count = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    def page() -> str:
        return html(ledgers_page(kept, 0, ViewRequest(PageAddress("/ledgers", params), 1, 5.0)), ())

    assert page().count("<tr>") == ROWS + 1
    sys.setprofile(profile)
    try:
        page()
    finally:
        sys.setprofile(None)
    return count


def require_equal_work(few: LedgerList, many: LedgerList) -> None:
    assert calls_of_a_page(many, state="closed", rows="3") <= calls_of_a_page(few, state="closed", rows="3") + 50
    assert calls_of_a_page(many, rows="5") <= calls_of_a_page(few, rows="5") + 50


def test_a_page_of_many_ledgers_is_as_much_work_as_one_of_a_few() -> None:
    require_equal_work(listed(1200).seal(()), listed(6000).seal(()))


def test_a_page_of_a_hundred_thousand_ledgers_is_as_much_work_as_one_of_a_thousand() -> None:
    require_equal_work(listed(1200).seal(()), listed(100_000).seal(()))
