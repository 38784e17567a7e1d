"""``python -m tests.segments.world docs/faultlog.md``: which bugs the worlds of streams find, at which seed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.faultlog import put_section
from tests.segments.world.stream_bugs import BUGS
from tests.segments.world.stream_worlds import BATCHES_FROM, find

TITLE: Final = "Planted bugs in streams"


def section(found: Mapping[str, tuple[int, str]]) -> str:
    """The section: bug -> the seed at which it is found, and as what."""
    lines = [
        "Made by `python -m tests.segments.world docs/faultlog.md`.",
        "How the worlds work: [tests/segments/world/stream_worlds.py](../tests/segments/world/stream_worlds.py).",
        f"Seeds are tried from 0 on, those of batches from {BATCHES_FROM} on.",
        "Replay one with `python -m tests.segments.world.stream_worlds --bug NAME`.",
        "",
        "| Bug | What it does | Breaks | Within | Found at seed | Seen as |",
        "|---|---|---|---|---|---|",
    ]
    for name, bug in BUGS.items():
        seed, seen = found.get(name, ("not found", ""))
        lines.append(
            f"| `{name}` | {bug.what} | {bug.breaks} | {bug.within} | {seed} | {seen[:90].replace('|', '/')} |"
        )
    return "\n".join(lines)


def main(page: str) -> None:
    """Look for every bug, and write the section."""
    found: dict[str, tuple[int, str]] = {}
    for name in BUGS:
        if (report := find(name)) is not None:
            found[name] = (report.seed, report.problems[0].split("\n")[0])
    put_section(Path(page), TITLE, section(found))


if __name__ == "__main__":
    main(sys.argv[1])
