"""``make demo``: a stateful Spark stream survives the loss of a bookie, of its gateway and of its driver."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from bookkeeper.amounts import counted
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.command import Demo, run_demo
from examples.flights.story import FlightFacts, FlightPlan, FlightStory
from examples.flights.verdict import Verdict
from examples.flights.view import FlightPicture, FlightView
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> FlightStory:
    if arguments.bookies == "apache" and arguments.metadata != "zk":
        raise DemoError("Apache's bookies keep their metadata in ZooKeeper: --metadata zk")
    plan = FlightPlan(
        directory=directory,
        metadata=arguments.metadata,
        state_store=arguments.state_store,
        sabotage=arguments.sabotage,
        files_per_trigger=arguments.files_per_trigger,
        bookies=arguments.bookies,
    )
    return FlightStory(plan, children, FlightView(FlightPicture(), console))


def last_line(verdict: Verdict, facts: FlightFacts) -> str:
    """The one line that says it."""
    answer = "yes" if verdict.exactly_once else "no"
    said = [
        counted(verdict.batches, "batch"),
        counted(verdict.rows, "row"),
        counted(verdict.replayed, "batch", "replayed", "replayed"),
        f"driver killed {counted(facts.driver_killed, 'time')}",
        f"bookie lost {facts.bookie_lost}",
        f"gateway killed {facts.gateway_killed}",
        f"zombie refused {facts.zombie_refused}",
    ]
    return f"demo: exactly once: {answer} ({', '.join(said)})"


def rows(verdict: Verdict, facts: FlightFacts) -> list[tuple[str, str]]:
    """What was done, and what came of it."""
    found = [("first batch committed after", f"{facts.first_commit_s:.1f} s")]
    if cold := os.environ.get("BK_DEMO_BEGAN"):
        found.append(("cold time", f"{facts.first_commit_at - float(cold):.0f} s from `make` to there"))
    if megabytes := os.environ.get("BK_DEMO_DOWNLOADED_MB"):
        found.append(("downloaded", f"{megabytes} MB by pip (what its cache held is not counted)"))
    return [
        *found,
        ("groups compared", f"{verdict.groups:,} (day, carrier, origin)"),
        ("groups or batches that differ", f"{verdict.differing}"),
        ("driver killed between offsets/N and commits/N", f"{facts.driver_killed}"),
        ("batches begun more than once", f"{verdict.replayed}"),
        ("bookies lost with their disk", f"{facts.bookie_lost}"),
        ("gateways killed", f"{facts.gateway_killed}"),
        ("second drivers' victims (zombies) refused", f"{facts.zombie_refused}"),
    ]


def options(parser: argparse.ArgumentParser) -> None:
    """What a person may choose in this demo alone."""
    parser.set_defaults(metadata="zk")
    parser.add_argument("--state-store", choices=["hdfs", "rocksdb"], default="hdfs", help="Spark's state store")
    parser.add_argument(
        "--bookies", choices=["ours", "apache"], default="ours", help="ours, or the real Apache BookKeeper's, in Java"
    )
    parser.add_argument("--files-per-trigger", type=int, default=3)


def main() -> int:
    return run_demo(
        Demo(
            name="demo",
            about=__doc__,
            sabotage="throw offsets away before a restart: must end in 'no'",
            story=story,
            rows=rows,
            last_line=last_line,
            options=options,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
