"""``make demo-namenode``: a name node of two replicas survives what is done to it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bookkeeper.amounts import counted
from examples.demo_kit.command import Demo, run_demo
from examples.namenode_sim.audit import NameNodeVerdict
from examples.namenode_sim.story import NameNodeFacts, NameNodePlan, NameNodeStory
from examples.namenode_sim.view import NameNodePicture, NameNodeView
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> NameNodeStory:
    plan = NameNodePlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, pause_s=1.0, checkpoint_edits=100, segment_edits=150, away_s=2.0)
    return NameNodeStory(plan, children, NameNodeView(NameNodePicture(), console))


def last_line(found: NameNodeVerdict, facts: NameNodeFacts) -> str:
    """The one line that says it."""
    said = [
        f"{found.acknowledged} requests acknowledged",
        counted(found.edits, "edit"),
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


def rows(found: NameNodeVerdict, facts: NameNodeFacts) -> list[tuple[str, str]]:
    """What was done, and what came of it."""
    return [
        ("requests acknowledged", f"{found.acknowledged:,}"),
        ("edits in the journal", f"{found.edits:,}"),
        *(("from the blow to the next answer", f"{took:.1f} s") for took in facts.take_over_s),
        ("acknowledged, and lost", f"{len(found.lost)}"),
        ("applied twice", f"{len(found.doubled)}"),
        ("replicas and copies that differ from the journal", f"{len(found.different)}"),
        ("clients that ran into something", f"{len(found.refused)}"),
    ]


def main() -> int:
    return run_demo(
        Demo(
            name="namenode",
            about=__doc__,
            sabotage="an overtaken replica answers on: must end in 'no'",
            short="no quiet between the blows",
            story=story,
            rows=rows,
            last_line=last_line,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
