"""The story runs as a whole by ``make demo-stream``; here is what can be told without a cluster."""

from __future__ import annotations

from pathlib import Path

from examples.demo_stream.story import StreamFacts, StreamPlan


def test_a_plan_has_defaults_for_everything_but_its_directory() -> None:
    plan = StreamPlan(directory=Path("/nowhere"))
    assert (plan.metadata, plan.sabotage) == ("sqlite", False)
    assert StreamFacts().take_over_s == {}
