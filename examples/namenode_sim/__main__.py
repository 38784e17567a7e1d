"""``make demo-namenode``: a name node of two replicas survives what is done to it."""

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
from examples.namenode_sim.audit import NameNodeVerdict
from examples.namenode_sim.story import NameNodeDemoError, NameNodeFacts, NameNodePlan, NameNodeStory
from examples.namenode_sim.view import NameNodePicture, NameNodeView
from examples.processes import Children

_PROBLEMS_SHOWN = 20


async def tell(plan: NameNodePlan, console: Console) -> tuple[NameNodeVerdict, NameNodeFacts]:
    """Run the story to its end. Ends every child, whatever happens."""
    picture = NameNodePicture()
    logs = plan.directory / "logs"
    logs.mkdir(parents=True)
    logging.basicConfig(filename=logs / "demo.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with NameNodeView(picture, console) as view:
        async with Children(logs) as children:
            story = NameNodeStory(plan, children, view, picture)
            return await story.run(), story.facts


def last_line(found: NameNodeVerdict, facts: NameNodeFacts) -> str:
    """The one line that says it."""
    said = [
        f"{found.acknowledged} requests acknowledged",
        f"{found.edits} edits",
        f"{len(found.lost)} lost",
        f"{len(found.doubled)} applied twice",
        f"{facts.killed} active replica killed",
        f"{facts.zombies} zombie woken",
        f"{facts.bookies_lost} bookie lost",
        f"{facts.bits} bits flipped",
        f"{facts.damaged_met} damaged records met",
        f"{facts.checkpoints_damaged} checkpoint damaged",
        f"metadata away for {facts.away_s:.0f} s",
    ]
    good = "yes" if found.good else "no"
    return f"namenode: nothing acknowledged lost, nothing applied twice: {good} ({', '.join(said)})"


def show(console: Console, found: NameNodeVerdict, facts: NameNodeFacts, seconds: float) -> None:
    """The table, and what is wrong."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s")
    table.add_row("requests acknowledged", f"{found.acknowledged:,}")
    table.add_row("edits in the journal", f"{found.edits:,}")
    for took in facts.take_over_s:
        table.add_row("from the blow to the next answer", f"{took:.1f} s")
    table.add_row("acknowledged, and lost", f"{len(found.lost)}")
    table.add_row("applied twice", f"{len(found.doubled)}")
    table.add_row("replicas that differ from the journal", f"{len(found.different)}")
    table.add_row("clients that ran into something", f"{len(found.refused)}")
    console.print(table)
    for line in found.problems[:_PROBLEMS_SHOWN]:
        console.print(f"  {line}", highlight=False, soft_wrap=True, markup=False)
    if len(found.problems) > _PROBLEMS_SHOWN:
        console.print(f"  … and {len(found.problems) - _PROBLEMS_SHOWN} more")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo-namenode", description=__doc__)
    parser.add_argument("--metadata", choices=["sqlite", "zk"], default="sqlite", help="where the metadata live")
    parser.add_argument("--sabotage", action="store_true", help="an overtaken replica answers on: must end in 'no'")
    parser.add_argument("--short", action="store_true", help="no quiet between the blows")
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    arguments = parser.parse_args()
    console = Console()
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix="bk-namenode-"))).resolve()
    console.print(
        f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards",
        highlight=False,
        soft_wrap=True,
    )
    plan = NameNodePlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=1.0, checkpoint_edits=100, segment_edits=150, away_s=2.0)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        found, facts = asyncio.run(tell(plan, console))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; every child process has been ended, and {directory} may be deleted", soft_wrap=True
        )
        return 130
    except (NameNodeDemoError, HealDemoError) as error:
        console.print(f"namenode: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        return 2
    show(console, found, facts, time.monotonic() - began)
    console.print(f"nothing needs {directory} any more: rm -r {directory}", highlight=False, soft_wrap=True)
    print(last_line(found, facts), flush=True)
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
