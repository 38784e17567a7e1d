"""HTML of pages: everything is escaped, and what is missing is an error."""

from __future__ import annotations

from html.parser import HTMLParser

import jinja2
import pytest

from bookkeeper.console.blocks import Paging, ShownFacts, ShownNote, ShownTable
from bookkeeper.console.cells import PageLink, ShownCell
from bookkeeper.console.drawing import Box, Drawing, Label
from bookkeeper.console.panels import Tone
from bookkeeper.console.templates import ASSETS, asset, environment, html
from bookkeeper.console.views.view import Choice, PageView, ShownAction

EVIL = "\"'></title></script><script>alert(1)</script>"


class Found(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def evil_view() -> PageView:
    cells = tuple(ShownCell(EVIL, kind, EVIL, title=EVIL) for kind in ("text", "bar", "state"))
    plain = tuple(ShownCell(EVIL, kind, title=EVIL) for kind in ("text", "bar", "state"))
    drawing = Drawing(1, 1, (Label(0, 0, EVIL, EVIL),), (), (Box(0, 0, 1, 1, "seen", EVIL, EVIL),), (), EVIL)
    return PageView(
        EVIL,
        "/",
        (
            ShownFacts(EVIL, ((EVIL, cells[0]),)),
            ShownTable(EVIL, (EVIL,) * 3, (cells, plain), EVIL, Paging(1, 2, 2, (PageLink(EVIL, EVIL),))),
            ShownTable("", (), (), EVIL, Paging(0, 0, 0)),
            ShownNote(EVIL, Tone.BAD),
        ),
        summary=EVIL,
        age=EVIL,
        problem=EVIL,
        choices=((EVIL, (Choice(EVIL, EVIL, 1),)),),
        drawing=drawing,
        actions=(ShownAction(EVIL, EVIL, EVIL, EVIL, {EVIL: EVIL}),),
    )


@pytest.mark.rule("X67")
def test_whatever_a_value_holds_a_page_has_its_own_script_alone() -> None:
    found = Found(html(evil_view(), (PageLink(EVIL, EVIL),)))
    assert [attributes for tag, attributes in found.tags if tag == "script"] == [
        {"src": "/static/console.js", "defer": None}
    ]
    names = {name for _, attributes in found.tags for name in attributes}
    assert not any(name.startswith("on") for name in names) and "style" not in names
    assert sum(tag == "a" for tag, _ in found.tags) > 4


def test_an_action_says_what_it_sends() -> None:
    page = html(PageView("x", "/", actions=(ShownAction("drain", "Drain", "b1", "says", {"off": "1"}),)), ())
    (button,) = [attributes for tag, attributes in Found(page).tags if "data-action" in attributes]
    assert (button["data-target"], button["data-params"]) == ("b1", '{"off": "1"}')


def test_a_variable_that_is_missing_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_the_files_are_there_and_load_nothing_from_elsewhere() -> None:
    for name in ASSETS:
        text = asset(name).decode()
        assert text and "@import" not in text and "eval(" not in text and "innerHTML" not in text
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
