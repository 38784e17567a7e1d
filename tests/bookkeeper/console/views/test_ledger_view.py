"""The page of one ledger."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from bookkeeper.console.panels import Tone
from bookkeeper.console.views.ledger_view import CUSTOM_SHOWN, ledger_page
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, explain_range
from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger
from tests.bookkeeper.console.views.made_up import SPEC, asked, closed, texts

PLACES = {BookieId("b1"): "/rack1", BookieId("b2"): "/rack2"}


def explained(*states: CopyState) -> ExplainedLedger:
    copies = [
        ExplainedCopy(BookieId(f"b{n}"), state, 4 if state is CopyState.LACKING else 0, (range(4),), "")
        for n, state in enumerate(states, 1)
    ]
    found = explain_range(SPEC, EntryId(0), EntryId(9), True, copies)
    return ExplainedLedger(LedgerId(7), closed(), (found,), PLACES)


def page(*states: CopyState) -> tuple[str, Tone, str]:
    view = ledger_page(LedgerId(7), closed(), explained(*states), "", asked("/ledgers/7"))
    assert view.drawing is not None and len(view.drawing.boxes) == len(states)
    return view.summary, view.tone, texts(view)


def test_a_whole_ledger_says_so_and_what_failures_would_lose() -> None:
    summary, tone, said = page(CopyState.SEEN, CopyState.SEEN)
    assert summary == "closed: every copy was seen" and tone is Tone.GOOD
    assert "one more bookie | none | –" in said and "two more bookies | 10 | b1, b2" in said
    assert (
        "all in /rack1 | none | –" in said and "0..9 | b1 | /rack1 | seen | – | nothing | everything (b1, b2)" in said
    )


def test_what_lacks_or_is_lost_says_what_to_do() -> None:
    summary, tone, said = page(CopyState.LACKING, CopyState.SEEN)
    assert (
        tone is Tone.WARN and "some lack copies" in summary and "bk ledger repair 7" in said and "lacking | 4" in said
    )
    summary, tone, said = page(CopyState.GONE, CopyState.GONE)
    assert (
        tone is Tone.BAD and "10 entries lost for now" in summary and "Start the bookies that are gone: b1, b2" in said
    )
    summary, tone, _ = page(CopyState.BELIEVED, CopyState.GONE)
    assert tone is Tone.WARN and "no copy was seen" in summary


def test_metadata_are_shown_when_bookies_cannot_be_asked_and_never_the_password() -> None:
    custom = {"app": b"x" * 500, "raw": b"\xff\xfe"}
    metadata = dataclasses.replace(closed(), password=b"hunter2", custom=MappingProxyType(custom))
    view = ledger_page(LedgerId(7), metadata, None, "it took longer than 10 s", asked("/ledgers/7", "repair"))
    said = texts(view)
    assert "could not be asked: it took longer than 10 s" in said and "E/Qw/Qa: 2/2/2" in said
    assert "hunter2" not in said and "2 bytes that are no text" in said
    assert "x" * CUSTOM_SHOWN + "… (500 characters)" in said and "x" * (CUSTOM_SHOWN + 1) not in said
    assert [each.action for each in view.actions] == ["repair"]
