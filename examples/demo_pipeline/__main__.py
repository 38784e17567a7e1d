"""``make demo-pipeline``: flights from stream to stream through Spark, exactly once, whatever is killed."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from examples.demo_kit.command import Demo, run_demo
from examples.demo_pipeline.story import PipelineFacts, PipelinePlan, PipelineStory
from examples.demo_pipeline.verdict import PipelineVerdict
from examples.demo_pipeline.view import PipelinePicture, PipelineView
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> PipelineStory:
    plan = PipelinePlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage)
    if arguments.short:
        plan = replace(plan, files=40, file_pause_s=1.0)
    return PipelineStory(plan, children, PipelineView(PipelinePicture(), console))


def last_line(found: PipelineVerdict, facts: PipelineFacts) -> str:
    """The one line that says it."""
    said = [
        f"{found.rows} flights",
        f"{found.records} results",
        f"{found.twice} twice",
        f"{found.differing} of {found.groups} groups differ",
        f"driver killed {facts.drivers_killed} times",
        f"{facts.published_uncommitted} between publish and commit log",
        f"{facts.executors_killed} executor killed",
        f"{facts.gateways_killed} gateway killed",
        f"{facts.bookies_lost} bookie lost",
        f"{facts.feeders_killed} owner killed",
    ]
    return f"pipeline: exactly once from end to end: {'yes' if found.good else 'no'} ({', '.join(said)})"


def rows(found: PipelineVerdict, facts: PipelineFacts) -> list[tuple[str, str]]:
    """What was done, and what came of it."""
    return [
        ("first batch committed after", f"{facts.first_commit_s:.0f} s"),
        ("flights appended, and counted in batch", f"{found.rows:,}"),
        ("groups compared", f"{found.groups:,} (day, carrier, origin)"),
        ("results in the second stream", f"{found.records:,}"),
        ("of these there twice", f"{found.twice:,}"),
        ("groups that differ", f"{found.differing:,}"),
        ("drivers killed", f"{facts.drivers_killed}"),
        ("of these between publishing a batch and its commit", f"{facts.published_uncommitted}"),
        (
            "executors, gateways, owners killed",
            f"{facts.executors_killed + facts.gateways_killed + facts.feeders_killed}",
        ),
        ("bookies lost with their disk", f"{facts.bookies_lost}"),
    ]


def main() -> int:
    return run_demo(
        Demo(
            name="pipeline",
            about=__doc__,
            sabotage="a batch's key is ignored: must end in 'no'",
            short="fewer, larger files of flights",
            story=story,
            rows=rows,
            last_line=last_line,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
