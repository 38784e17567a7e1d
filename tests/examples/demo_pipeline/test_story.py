"""What can be told of the story without a cluster, and the whole of ``make demo-pipeline``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo_pipeline.story import PipelineFacts, PipelinePlan, executors

ROOT = Path(__file__).resolve().parents[3]


def test_a_plan_has_defaults_for_everything_but_its_directory() -> None:
    plan = PipelinePlan(directory=Path("/nowhere"))
    assert (plan.metadata, plan.sabotage) == ("sqlite", False)
    assert PipelineFacts().published_uncommitted == 0


def test_only_executors_of_the_driver_s_group_count() -> None:
    assert executors(os.getpgid(0)) == []


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_whatever_is_killed_the_second_stream_is_what_the_query_gives_in_batch(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_pipeline", "--dir", str(tmp_path / "demo")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    last = output.strip().splitlines()[-1]
    assert last.startswith("pipeline: exactly once from end to end: yes ("), output
    assert "1 between publish and commit log" in last and "0 twice" in last
    assert done.returncode == 0
