"""Values as a page shows them."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from bookkeeper.console.cells import PageLink, ShownCell, detail_path, shown, span, utc
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    DetailLink,
    Duration,
    LedgerLink,
    Moment,
    Proportion,
    StateWord,
    Tone,
)

NOW_MS = 1_700_000_100_000


@pytest.mark.parametrize(
    ("cell", "text", "kind"),
    [
        (None, "–", "none"),
        (True, "yes", "text"),
        (1234567, "1 234 567", "number"),
        (0.12345, "0.123", "number"),
        ("<b>", "<b>", "text"),
        (ByteCount(1536), "1.5 KiB", "number"),
        (Duration(0.0123), "12 ms", "number"),
        (StateWord("open", Tone.WARN), "open", "state"),
        (LedgerLink(7), "7", "number"),
        (Proportion(1, 3), "33 %", "bar"),
        (Proportion(5, 3), "100 %", "bar"),
        (Proportion(1, 0), "0 %", "bar"),
        (Moment(NOW_MS - 200_000), "3 min 20 s ago", "time"),
        (Moment(NOW_MS + 1_000), "0 s ago", "time"),
    ],
)
def test_each_kind_of_value_has_its_text(cell: Cell, text: str, kind: str) -> None:
    found = shown(cell, NOW_MS)
    assert (found.text, found.kind) == (text, kind)


def test_links_lead_to_their_pages() -> None:
    assert shown(LedgerLink(7), 0).href == "/ledgers/7"
    assert shown(PageLink("a", "/b?c=d"), 0).href == "/b?c=d"
    assert shown(DetailLink("x", "k", "other"), 0, "own").href == "/panels/other?of=k"


@pytest.mark.parametrize("key", ["a/b", "..", "ä & b=c", "%2e", "#?"])
def test_a_key_comes_back_as_it_was(key: str) -> None:
    parts = urlsplit(detail_path("streams", key))
    assert parts.path == "/panels/streams" and parse_qs(parts.query) == {"of": [key]} and not parts.fragment


def test_a_tone_has_a_sign_besides_its_colour() -> None:
    assert [ShownCell("", tone=tone).sign for tone in Tone] == ["", "✓", "!", "✗"]


def test_times_that_no_calendar_has_are_numbers() -> None:
    assert utc(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert utc(10**20) == f"{10**20} ms since 1970"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000004, "0 µs"), (0.00074, "740 µs"), (0.5, "500 ms"), (1.44, "1.4 s"), (200, "3 min 20 s")],
)
def test_spans_of_time(seconds: float, text: str) -> None:
    assert span(seconds) == text
