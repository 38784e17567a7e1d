"""The list of ledgers, and the deleted ones."""

from __future__ import annotations

from bookkeeper.console.picture import DeletedRow
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.ledgers_view import deleted_page, ledgers_page
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from tests.bookkeeper.console.views.made_up import NOW_MS, SPEC, asked, closed, kept, ledgers, texts

OPEN = LedgerMetadata.create(SPEC, [BookieId("b1"), BookieId("b3")], ctime_ms=NOW_MS - 60_000)


def test_a_row_says_state_copies_quorums_entries_and_size() -> None:
    view = ledgers_page(kept(ledgers(closed(), OPEN)), 0, asked("/ledgers"))
    said = texts(view)
    assert "0 | closed | well | 2/2/2 | 10 | 100 B | 1 | 2 | –" in said
    assert "1 | open | short | 2/2/2 | – | – | 1 | 2 | 1 min ago" in said
    assert said.index("1 | open") < said.index("0 | closed"), "newest first"


def test_the_lists_that_can_be_chosen_have_their_counts_and_keep_the_other_choice() -> None:
    view = ledgers_page(kept(ledgers(closed(), OPEN)), 0, asked("/ledgers", state="open", bookie="b1", rows="3"))
    groups = {name: {each.text: each for each in choices} for name, choices in view.choices}
    assert groups["state"]["open"].is_chosen and groups["state"]["closed"].count == 1
    assert groups["copies"]["short"].path == "/ledgers?state=open&bookie=b1&health=short"
    assert groups["bookie"]["all"].path == "/ledgers?state=open"
    assert view.summary == "1 ledger that name b1" or view.summary.startswith("1 ledger")
    assert [row[0].text for row in view.blocks[0].rows] == ["1"]  # type: ignore[union-attr]


def test_while_ledgers_are_read_their_number_is_told() -> None:
    assert "4711 so far" in ledgers_page(CachedValue(), 4711, asked("/ledgers")).summary


def test_deleted_ledgers_and_the_one_that_may_be_purged() -> None:
    row = DeletedRow(LedgerId(7), NOW_MS - 60_000, NOW_MS + 120_000, 50, 3)
    picture = kept(ledgers(deleted=[row, DeletedRow(LedgerId(8), 0, 0, None, None, "damaged")]))
    said = texts(deleted_page(picture, asked("/deleted")))
    assert "7 | 1 min ago | for 2 min | 3 | 50 B" in said and "not for long" in said and "damaged" in said
    one = deleted_page(picture, asked("/deleted", "purge", of="7"))
    assert [(each.action, each.target) for each in one.actions] == [("purge", "7")]
    assert deleted_page(picture, asked("/deleted", of="7")).actions == ()
    assert deleted_page(picture, asked("/deleted", of="9")).code == 404
    assert "No deleted ledger" in texts(deleted_page(kept(ledgers()), asked("/deleted")))
