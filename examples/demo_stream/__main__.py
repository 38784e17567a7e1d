"""``make demo-stream``: streams of flights, whatever is done to their owners, gateways and bookies."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bookkeeper.amounts import counted
from examples.demo_kit.command import Demo, run_demo
from examples.demo_stream.story import StreamFacts, StreamPlan, StreamStory
from examples.demo_stream.verdict import StreamVerdict
from examples.demo_stream.view import StreamPicture, StreamView
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> StreamStory:
    plan = StreamPlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=2.0)
    return StreamStory(plan, children, StreamView(StreamPicture(), console))


def last_line(found: StreamVerdict, facts: StreamFacts) -> str:
    """The one line that says it."""
    said = [
        counted(found.appended, "record", "appended", "appended"),
        f"{found.read} read",
        f"{found.refused} refused as duplicates",
        f"{found.gaps} gaps",
        f"{facts.owners_killed} owner killed",
        f"{facts.zombies} zombie woken",
        f"{facts.bookies_lost} bookie lost",
        f"{facts.gateways_killed} gateway killed",
        f"{facts.rolls} rolls forced",
        counted(facts.truncated, "record", "truncated", "truncated"),
    ]
    return f"stream: exactly once: {'yes' if found.good else 'no'} ({', '.join(said)})"


def rows(found: StreamVerdict, facts: StreamFacts) -> list[tuple[str, str]]:
    """What was done, and what came of it."""
    return [
        ("records acknowledged", f"{found.appended:,}"),
        ("records that the tails have read", f"{found.read:,}"),
        ("records sent again, and refused as duplicates", f"{found.refused:,}"),
        *((f"{blow}: until the next acknowledgement", f"{took:.1f} s") for blow, took in facts.take_over_s.items()),
        ("problems", f"{len(found.problems)}"),
    ]


def main() -> int:
    return run_demo(
        Demo(
            name="stream",
            about=__doc__,
            sabotage="producers without ids: must end in 'no'",
            short="no quiet between the blows",
            story=story,
            rows=rows,
            last_line=last_line,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
