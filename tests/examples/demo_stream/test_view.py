from __future__ import annotations

import io

from rich.console import Console

from examples.demo_stream.readers import ReadCheck
from examples.demo_stream.view import StreamPicture, StreamView


def picture() -> StreamPicture:
    return StreamPicture(
        processes={"owner1": "killed", "g1": "runs"},
        acknowledged={"p1": 1000, "p2": 234},
        refused=5,
        segments={"flights/library": 3},
        readers=[ReadCheck("tail", read=1200), ReadCheck("cursor", read=7, doubled=2)],
    )


def test_without_a_terminal_everything_that_happens_is_a_line() -> None:
    out = io.StringIO()
    shown = picture()
    with StreamView(shown, Console(file=out, width=60)) as view:
        view.waits("owner2 takes over")
        view.happened("owner1 was [killed]")
        shown.began -= 100
        view.looked()
        view.looked()
    lines = out.getvalue().splitlines()
    assert [line.partition(" s  ")[2] for line in lines[:2]] == [
        "waiting: owner2 takes over ...",
        "owner1 was [killed]",
    ]
    assert sum("1234 appended, 5 refused" in line for line in lines) == 2, "once while it runs, once at the end"
    assert "tail 1200, cursor 7; flights/library 3 segments; g1 runs, owner1 killed" in lines[2]


def test_the_table_shows_producers_readers_and_what_is_wrong() -> None:
    console = Console(file=io.StringIO(), width=200)
    view = StreamView(picture(), console)
    view.waits("nothing")
    with console.capture() as captured:
        console.print(view.draw())
    shown = captured.get()
    expected = ("p1", "1,000 appended", "2 twice, 0 missing", "owner1: killed", "s: nothing ...")
    assert all(text in shown for text in expected)
