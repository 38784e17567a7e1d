"""The story runs as a whole by ``make demo-pipeline``; here is what can be told without a cluster."""

from __future__ import annotations

import os
from pathlib import Path

from examples.demo_pipeline.story import PipelineFacts, PipelinePlan, executors


def test_a_plan_has_defaults_for_everything_but_its_directory() -> None:
    plan = PipelinePlan(directory=Path("/nowhere"))
    assert (plan.metadata, plan.sabotage) == ("sqlite", False)
    assert PipelineFacts().published_uncommitted == 0


def test_only_executors_of_the_driver_s_group_count() -> None:
    assert executors(os.getpgid(0)) == []
