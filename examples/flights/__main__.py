"""``make demo``: a stateful Spark stream survives the loss of a bookie, of its gateway and of its driver."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bookkeeper.launchers import machine_speed
from examples.flights.data import ROWS, cut
from examples.flights.story import FILES, DemoError, Options, Story, Told
from examples.flights.verdict import Verdict
from examples.flights.view import Picture, View
from examples.processes import Children


async def tell(options: Options, console: Console) -> tuple[Verdict, Told]:
    """Run the story to its end, then compare. Ends every child, whatever happens."""
    picture = Picture(total_rows=ROWS)
    logs = options.directory / "logs"
    logs.mkdir(parents=True)
    with View(picture, console) as view:
        async with Children(logs) as children:
            story = Story(options, children, view, picture)
            cut(story.data, FILES)
            view.happened(f"{ROWS:,} flights were cut into {FILES} files")
            try:
                await story.start()
                kind = "bookies of Apache BookKeeper" if options.bookies == "apache" else "bookies"
                view.happened(f"three {kind} and the gateway are up")
                await story.run()
                view.happened("the stream has ended; the same result in batch is computed")
                verdict = await story.judge()
            finally:
                await story.close()
    return verdict, story.told


def last_line(verdict: Verdict, told: Told) -> str:
    """The one line that says it."""
    answer = "yes" if verdict.exactly_once else "no"
    facts = [
        f"{verdict.batches} batches",
        f"{verdict.rows} rows",
        f"{verdict.replayed} batches replayed",
        f"driver killed {told.driver_killed} times",
        f"bookie lost {told.bookie_lost}",
        f"gateway killed {told.gateway_killed}",
        f"zombie refused {told.zombie_refused}",
    ]
    return f"demo: exactly once: {answer} ({', '.join(facts)})"


def show(console: Console, verdict: Verdict, told: Told, seconds: float) -> None:
    """The table, and what differs."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s; first batch committed after {told.first_commit_s:.1f} s")
    if cold := os.environ.get("BK_DEMO_BEGAN"):
        table.add_row(
            "cold time", f"{time.time() - float(cold) - seconds + told.first_commit_s:.0f} s from `make` to there"
        )
    if megabytes := os.environ.get("BK_DEMO_DOWNLOADED_MB"):
        table.add_row("downloaded", f"{megabytes} MB by pip (what its cache held is not counted)")
    table.add_row("groups compared", f"{verdict.groups:,} (day, carrier, origin)")
    table.add_row("groups or batches that differ", f"{verdict.differing}")
    table.add_row("driver killed between offsets/N and commits/N", f"{told.driver_killed}")
    table.add_row("batches begun more than once", f"{verdict.replayed}")
    table.add_row("bookies lost with their disk", f"{told.bookie_lost}")
    table.add_row("gateways killed", f"{told.gateway_killed}")
    table.add_row("second drivers' victims (zombies) refused", f"{told.zombie_refused}")
    console.print(table)
    for line in verdict.differences:
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    if verdict.differing > len(verdict.differences):
        console.print(f"  … and {verdict.differing - len(verdict.differences)} more")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--metadata", choices=["zk", "sqlite"], default="zk", help="where the cluster's metadata live")
    parser.add_argument("--state-store", choices=["hdfs", "rocksdb"], default="hdfs", help="Spark's state store")
    parser.add_argument("--sabotage", action="store_true", help="throw offsets away before a restart: must end in 'no'")
    parser.add_argument(
        "--bookies", choices=["ours", "apache"], default="ours", help="ours, or the real Apache BookKeeper's, in Java"
    )
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    parser.add_argument("--files-per-trigger", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.bookies == "apache" and arguments.metadata != "zk":
        parser.error("Apache's bookies keep their metadata in ZooKeeper: --metadata zk")
    console = Console()
    directory = arguments.dir or Path(tempfile.mkdtemp(prefix="bk-demo-"))
    console.print(
        f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards",
        highlight=False,
        soft_wrap=True,
    )
    console.print(machine_speed.told(), highlight=False, soft_wrap=True)
    options = Options(
        directory,
        arguments.metadata,
        arguments.state_store,
        arguments.sabotage,
        arguments.files_per_trigger,
        arguments.bookies,
    )
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        verdict, told = asyncio.run(tell(options, console))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; every child process has been ended, and {directory} may be deleted", soft_wrap=True
        )
        return 130
    except DemoError as error:
        console.print(f"demo: {error}", style="red", highlight=False, soft_wrap=True)
        return 2
    show(console, verdict, told, time.monotonic() - began)
    console.print(f"nothing needs {directory} any more: rm -r {directory}", highlight=False, soft_wrap=True)
    print(last_line(verdict, told), flush=True)
    complete = options.sabotage or (
        told.driver_killed >= 3 and verdict.replayed >= 3 and told.gateway_killed == 1 and told.zombie_refused == 1
    )
    return 0 if verdict.exactly_once and complete else 1


if __name__ == "__main__":
    sys.exit(main())
