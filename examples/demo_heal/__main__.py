"""``make demo-heal``: a cluster heals itself while writers run, whatever is done to its bookies."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bookkeeper.amounts import counted
from examples.demo_heal.story import HealFacts, HealPlan, HealStory
from examples.demo_heal.verdict import Wholeness
from examples.demo_heal.view import HealPicture, HealView
from examples.demo_kit.cluster import MIB
from examples.demo_kit.command import Demo, run_demo
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> HealStory:
    plan = HealPlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=0.5, check_every_s=1.0, small_disk_bytes=20 * MIB, quiet_s=5.0)
    return HealStory(plan, children, HealView(HealPicture(), console))


def last_line(found: Wholeness, facts: HealFacts) -> str:
    """The one line that says it."""
    said = [
        counted(found.ledgers, "ledger"),
        f"{counted(found.entries, 'acknowledged entry')} read back",
        counted(facts.lost, "bookie", "lost", "lost"),
        f"{facts.came_back} came back empty",
        f"{facts.filled} filled up",
        f"{facts.retired} taken out of service",
        f"{facts.bits} bits flipped",
        counted(facts.deleted, "ledger", "deleted", "deleted"),
        f"{facts.freed_bytes / 1e6:.0f} of {facts.before_bytes / 1e6:.0f} MB freed",
    ]
    return f"heal: whole: {'yes' if found.good else 'no'} ({', '.join(said)})"


def rows(found: Wholeness, facts: HealFacts) -> list[tuple[str, str]]:
    """What was done, and what came of it."""
    return [
        ("ledgers", f"{found.ledgers}, and {facts.deleted} that were deleted"),
        ("acknowledged entries that read back", f"{found.entries:,}"),
        ("racks lost, with two bookies and their disks", f"{facts.racks}"),
        ("bookies killed, and their disks deleted", f"{facts.lost}, of which {facts.came_back} came back empty"),
        ("bookies whose disk filled up", f"{facts.filled}"),
        ("bookies taken out of service", f"{facts.retired}"),
        ("bits flipped", f"{facts.bits}"),
        *((f"healed after the blow to {bookie}", f"{took:.1f} s") for bookie, took in facts.healed_s.items()),
        ("ledgers repaired", f"{facts.repaired}, {facts.copied_bytes / 1e6:.1f} MB copied"),
        ("space freed", f"{facts.freed_bytes / 1e6:.0f} of {facts.before_bytes / 1e6:.0f} MB"),
        ("copies that are not whole", f"{len(found.incomplete)}"),
        ("ledgers that did not read back", f"{len(found.unread)}"),
        ("ledgers still marked", f"{len(found.marks)}"),
    ]


def main() -> int:
    return run_demo(
        Demo(
            name="heal",
            about=__doc__,
            sabotage="do not start autorecovery: must end in 'no'",
            short="less than a minute: no quiet between the blows",
            story=story,
            rows=rows,
            last_line=last_line,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
