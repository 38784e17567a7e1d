"""The pages of panels."""

from __future__ import annotations

from bookkeeper.console.panels import DetailLink, PanelNote, PanelPage, PanelTable, Tone
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.panel_view import detail_page, panel_line, panel_page
from tests.bookkeeper.console.test_panel_book import GOOD
from tests.bookkeeper.console.views.made_up import asked, kept, texts

PAGE = PanelPage((PanelTable(("stream",), ((DetailLink("a", "a/b"),),)), PanelNote("n")), "1 stream", Tone.GOOD)


def test_a_panels_page_has_its_summary_its_age_and_links_to_its_own_pages() -> None:
    view = panel_page(GOOD, kept(PAGE), asked("/panels/good"))
    assert (view.title, view.nav, view.summary, view.tone) == ("Good", "/panels/good", "1 stream", Tone.GOOD)
    assert view.blocks[0].rows[0][0].href == "/panels/good?of=a%2Fb"  # type: ignore[union-attr]
    assert "as of 3 s ago" in texts(view)
    assert panel_page(GOOD, CachedValue(), asked()).refresh_s == 1.0


def test_a_detail_names_its_key() -> None:
    view = detail_page(GOOD, "a/b", PAGE, asked("/panels/good", of="a/b"))
    assert view.title == "Good: a/b" and view.nav == "/panels/good"


def test_the_first_page_says_a_panels_summary_or_why_there_is_none() -> None:
    assert panel_line(GOOD, kept(PAGE)) == ("/panels/good", "Good", "1 stream", Tone.GOOD)
    assert panel_line(GOOD, CachedValue(None, problem="no gateway"))[2:] == ("no gateway", Tone.WARN)
    assert panel_line(GOOD, CachedValue())[2] == "not read yet"
