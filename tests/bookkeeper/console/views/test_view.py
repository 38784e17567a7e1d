"""What all pages have."""

from __future__ import annotations

from bookkeeper.console.panels import Tone
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import PageView, age_of, links, not_found, problem_of, waiting
from tests.bookkeeper.console.views.made_up import NOW_MS


def test_age_and_problem_are_sentences() -> None:
    kept = CachedValue(1, NOW_MS - 65_000, 1.44, "the store is away")
    assert age_of(kept, NOW_MS) == "as of 1 min 5 s ago, read in 1.4 s"
    assert problem_of(kept) == "Nothing newer can be shown: the store is away"
    assert problem_of(CachedValue(1)) == ""


def test_a_page_that_waits_is_asked_for_again_soon_and_one_that_is_not_there_never() -> None:
    assert waiting("t", "/", CachedValue(), "reading").refresh_s == 1.0
    missing = not_found("t", "/", "no")
    assert missing.code == 404 and missing.refresh_s is None and missing.sign == "!"
    assert PageView("t", "/", tone=Tone.GOOD).sign == "✓"
    assert [(each.text, each.path) for each in links(("a", "/a"))] == [("a", "/a")]
