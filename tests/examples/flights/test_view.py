"""What is shown while nothing happens."""

from __future__ import annotations

import io

from rich.console import Console

from examples.flights.view import FlightPicture, FlightView


def shown(view: FlightView, console: Console) -> str:
    with console.capture() as captured:
        console.print(view.draw())
    return captured.get()


def test_it_says_what_it_waits_for_until_something_happens() -> None:
    """For up to a minute, while a JVM started, nothing was said: it looked as if it hung."""
    out = io.StringIO()
    console = Console(file=out, width=200)
    picture = FlightPicture()
    view = FlightView(picture, console)
    view.waits("the JVM starts")
    assert "waiting: the JVM starts ..." in out.getvalue()
    assert "s: the JVM starts ..." in shown(view, console)
    view.happened("the first batch is committed")
    assert "the JVM starts" not in shown(view, console)
    view.waits("the comparison")
    view.on_progress({"batch": 0, "rows": 1, "rows_per_s": 1.0, "ms": {}, "state_commit_ms": 0})
    assert picture.waits_for == ""
