"""From a page's content to HTML, by Jinja: the only file that knows that library.

Everything is escaped: names of ledgers' owners, streams and bookies are chosen by clients. A variable that is missing
is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from bookkeeper.console.cells import PageLink
from bookkeeper.console.drawing import MEANINGS
from bookkeeper.console.views.view import PageView

if TYPE_CHECKING:
    from jinja2 import Environment

ASSETS: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages load, and what they are."""


@cache
def environment() -> Environment:
    """The templates. They are read once."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    found = Environment(
        autoescape=True, undefined=StrictUndefined, loader=DictLoader({"page.html": asset("page.html").decode()})
    )
    found.filters["tojson_text"] = _json
    return found


def _json(value: Mapping[str, str]) -> str:
    """JSON as a text, which is escaped like every other."""
    return json.dumps(dict(value))


@cache
def asset(name: str) -> bytes:
    """A file of this room."""
    return (resources.files("bookkeeper.console") / "assets" / name).read_bytes()


def html(view: PageView, navigation: Sequence[PageLink]) -> str:
    """The page. In any thread."""
    meanings = [(state.value, meaning) for state, meaning in MEANINGS.items()]
    text: str = environment().get_template("page.html").render(view=view, navigation=navigation, meanings=meanings)
    return text
