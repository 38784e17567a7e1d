"""What can be told of the story without a cluster, and the whole demo in short: exactly once with ids, not without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo_stream.flights import PRODUCERS
from examples.demo_stream.story import StreamFacts, StreamPlan, settings

ROOT = Path(__file__).resolve().parents[3]


def test_a_plan_has_defaults_for_everything_but_its_directory() -> None:
    plan = StreamPlan(directory=Path("/nowhere"))
    assert (plan.metadata, plan.sabotage) == ("sqlite", False)
    assert StreamFacts().take_over_s == {}


def test_the_streams_may_be_made_and_remember_all_producers() -> None:
    """Cause: streams got a bound of what they remember, the demo asked for more, and nothing ran it."""
    config = settings(StreamPlan(directory=Path("/nowhere")))
    config.require_bounds()
    assert config.producers.max_producers > len(PRODUCERS)


def demo(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo_stream", "--short", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_whatever_is_done_to_owners_gateways_and_bookies_every_record_is_there_once(tmp_path: Path) -> None:
    status, output = demo("--dir", str(tmp_path / "demo"))
    last = output.strip().splitlines()[-1]
    assert last.startswith("stream: exactly once: yes ("), output
    for part in ("0 gaps", "1 owner killed", "1 zombie woken", "1 bookie lost", "1 gateway killed"):
        assert part in last
    assert status == 0


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_without_ids_of_producers_it_ends_in_no(tmp_path: Path) -> None:
    status, output = demo("--sabotage", "--dir", str(tmp_path / "demo"))
    assert output.strip().splitlines()[-1].startswith("stream: exactly once: no ("), output
    assert status == 1
