"""``make demo-stream``: streams of flights, whatever is done to their owners, gateways and bookies."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.demo_heal.cluster import HealDemoError
from examples.demo_stream.story import StreamDemoError, StreamFacts, StreamPlan, StreamStory
from examples.demo_stream.verdict import StreamVerdict
from examples.demo_stream.view import StreamPicture, StreamView
from examples.processes import Children

_PROBLEMS_SHOWN = 20


async def tell(plan: StreamPlan, console: Console) -> tuple[StreamVerdict, StreamFacts]:
    """Run the story to its end. Ends every child, whatever happens."""
    picture = StreamPicture()
    logs = plan.directory / "logs"
    logs.mkdir(parents=True)
    logging.basicConfig(filename=logs / "demo.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with StreamView(picture, console) as view:
        async with Children(logs) as children:
            story = StreamStory(plan, children, view, picture)
            return await story.run(), story.facts


def last_line(found: StreamVerdict, facts: StreamFacts) -> str:
    """The one line that says it."""
    said = [
        f"{found.appended} records appended",
        f"{found.read} read",
        f"{found.refused} refused as duplicates",
        f"{found.gaps} gaps",
        f"{facts.owners_killed} owner killed",
        f"{facts.zombies} zombie woken",
        f"{facts.bookies_lost} bookie lost",
        f"{facts.gateways_killed} gateway killed",
        f"{facts.rolls} rolls forced",
        f"{facts.truncated} records truncated",
    ]
    return f"stream: exactly once: {'yes' if found.good else 'no'} ({', '.join(said)})"


def show(console: Console, found: StreamVerdict, facts: StreamFacts, seconds: float) -> None:
    """The table, and what is wrong."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s")
    table.add_row("records acknowledged", f"{found.appended:,}")
    table.add_row("records that the tails have read", f"{found.read:,}")
    table.add_row("records sent again, and refused as duplicates", f"{found.refused:,}")
    for blow, took in facts.take_over_s.items():
        table.add_row(f"{blow}: until the next acknowledgement", f"{took:.1f} s")
    table.add_row("problems", f"{len(found.problems)}")
    console.print(table)
    for line in found.problems[:_PROBLEMS_SHOWN]:
        console.print(f"  {line}", highlight=False, soft_wrap=True, markup=False)
    if len(found.problems) > _PROBLEMS_SHOWN:
        console.print(f"  … and {len(found.problems) - _PROBLEMS_SHOWN} more")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo-stream", description=__doc__)
    parser.add_argument("--metadata", choices=["sqlite", "zk"], default="sqlite", help="where the metadata live")
    parser.add_argument("--sabotage", action="store_true", help="producers without ids: must end in 'no'")
    parser.add_argument("--short", action="store_true", help="no quiet between the blows")
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    arguments = parser.parse_args()
    console = Console()
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix="bk-stream-"))).resolve()
    console.print(
        f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards",
        highlight=False,
        soft_wrap=True,
    )
    plan = StreamPlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=2.0)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        found, facts = asyncio.run(tell(plan, console))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; every child process has been ended, and {directory} may be deleted", soft_wrap=True
        )
        return 130
    except (StreamDemoError, HealDemoError) as error:
        console.print(f"stream: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        return 2
    show(console, found, facts, time.monotonic() - began)
    console.print(f"nothing needs {directory} any more: rm -r {directory}", highlight=False, soft_wrap=True)
    print(last_line(found, facts), flush=True)
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
