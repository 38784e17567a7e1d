"""What is shown."""

from __future__ import annotations

import io

from rich.console import Console

from examples.demo_heal.view import HealPicture, HealView


def test_without_a_terminal_everything_that_happens_is_a_line() -> None:
    out = io.StringIO()
    picture = HealPicture(bookies={"b1": "lost", "b2": "writable"}, stored={"b2": 3_000_000}, ledgers=7)
    view = HealView(picture, Console(file=out, width=60))
    with view:
        view.waits("the cluster heals itself")
        view.happened("b1 was [killed]")
        picture.began -= 100
        view.looked()
        view.looked()
    lines = out.getvalue().splitlines()
    assert [line.partition(" s  ")[2] for line in lines[:2]] == [
        "waiting: the cluster heals itself ...",
        "b1 was [killed]",
    ]
    assert sum("7 ledgers" in line for line in lines) == 2, "once while it runs, once at the end"
    assert "3 MB on disks; b1 lost, b2 writable" in lines[2]


def test_the_table_shows_every_bookie_and_what_is_waited_for() -> None:
    console = Console(file=io.StringIO(), width=200)
    picture = HealPicture(bookies={"b1": "lost", "b2": "read-only"}, under_replicated=4, auditing="all is well")
    view = HealView(picture, console)
    view.waits("nothing")
    with console.capture() as captured:
        console.print(view.draw())
    shown = captured.get()
    assert all(text in shown for text in ("b1", "lost", "read-only", "auditor: all is well", "s: nothing ..."))
