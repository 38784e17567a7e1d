"""``make demo-heal``: a cluster heals itself while writers run, whatever is done to its bookies."""

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

from examples.demo_heal.cluster import MIB, HealDemoError
from examples.demo_heal.story import HealFacts, HealPlan, HealStory
from examples.demo_heal.verdict import Wholeness
from examples.demo_heal.view import HealPicture, HealView
from examples.processes import Children

_PROBLEMS_SHOWN = 20


async def tell(plan: HealPlan, console: Console) -> tuple[Wholeness, HealFacts]:
    """Run the story to its end. Ends every child, whatever happens."""
    picture = HealPicture()
    logs = plan.directory / "logs"
    logs.mkdir(parents=True)
    logging.basicConfig(filename=logs / "demo.log", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with HealView(picture, console) as view:
        async with Children(logs) as children:
            story = HealStory(plan, children, view, picture)
            return await story.run(), story.facts


def last_line(found: Wholeness, facts: HealFacts) -> str:
    """The one line that says it."""
    said = [
        f"{found.ledgers} ledgers",
        f"{found.entries} acknowledged entries read back",
        f"{facts.lost} bookies lost",
        f"{facts.came_back} came back empty",
        f"{facts.filled} filled up",
        f"{facts.retired} taken out of service",
        f"{facts.bits} bits flipped",
        f"{facts.deleted} ledgers deleted",
        f"{facts.freed_bytes / 1e6:.0f} of {facts.before_bytes / 1e6:.0f} MB freed",
    ]
    return f"heal: whole: {'yes' if found.whole else 'no'} ({', '.join(said)})"


def show(console: Console, found: Wholeness, facts: HealFacts, seconds: float) -> None:
    """The table, and what is wrong."""
    table = Table(title="what was done, and what came of it", title_justify="left", show_header=False)
    table.add_row("time", f"{seconds:.0f} s")
    table.add_row("ledgers", f"{found.ledgers}, and {facts.deleted} that were deleted")
    table.add_row("acknowledged entries that read back", f"{found.entries:,}")
    table.add_row(
        "bookies killed, and their disks deleted", f"{facts.lost}, of which {facts.came_back} came back empty"
    )
    table.add_row("bookies whose disk filled up", f"{facts.filled}")
    table.add_row("bookies taken out of service", f"{facts.retired}")
    table.add_row("bits flipped", f"{facts.bits}")
    for bookie, took in facts.healed_s.items():
        table.add_row(f"healed after the blow to {bookie}", f"{took:.1f} s")
    table.add_row("ledgers repaired", f"{facts.repaired}, {facts.copied_bytes / 1e6:.1f} MB copied")
    table.add_row("space freed", f"{facts.freed_bytes / 1e6:.0f} of {facts.before_bytes / 1e6:.0f} MB")
    table.add_row("copies that are not whole", f"{len(found.incomplete)}")
    table.add_row("ledgers that did not read back", f"{len(found.unread)}")
    table.add_row("ledgers still marked", f"{len(found.marks)}")
    console.print(table)
    for line in found.problems[:_PROBLEMS_SHOWN]:
        console.print(f"  {line}", highlight=False, soft_wrap=True, markup=False)
    if len(found.problems) > _PROBLEMS_SHOWN:
        console.print(f"  … and {len(found.problems) - _PROBLEMS_SHOWN} more")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo-heal", description=__doc__)
    parser.add_argument("--metadata", choices=["sqlite", "zk"], default="sqlite", help="where the metadata live")
    parser.add_argument("--sabotage", action="store_true", help="do not start autorecovery: must end in 'no'")
    parser.add_argument("--short", action="store_true", help="less than a minute: no quiet between the blows")
    parser.add_argument("--dir", type=Path, help="a fresh directory for everything [default: a temporary one]")
    arguments = parser.parse_args()
    console = Console()
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix="bk-heal-"))).resolve()
    console.print(
        f"everything is in {directory} (logs in {directory / 'logs'}); it may be deleted afterwards",
        highlight=False,
        soft_wrap=True,
    )
    plan = HealPlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=0.5, check_every_s=1.0, small_disk_bytes=20 * MIB, quiet_s=5.0)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    began = time.monotonic()
    try:
        found, facts = asyncio.run(tell(plan, console))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; every child process has been ended, and {directory} may be deleted", soft_wrap=True
        )
        return 130
    except HealDemoError as error:
        console.print(f"heal: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        return 2
    show(console, found, facts, time.monotonic() - began)
    console.print(f"nothing needs {directory} any more: rm -r {directory}", highlight=False, soft_wrap=True)
    print(last_line(found, facts), flush=True)
    return 0 if found.whole else 1


if __name__ == "__main__":
    sys.exit(main())
