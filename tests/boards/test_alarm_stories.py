"""Prometheus's own tool: the rules are rules, and each alarm fires when it must, and not when it must not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.boards.alarm_stories import LONG, STORIES, Series
from tests.boards.deployed import PROMETHEUS, alarms
from tests.boards.prometheus import find

_AT = 30


@pytest.fixture(scope="module")
def promtool() -> Path:
    found = find("promtool")
    if found is None:
        pytest.skip("promtool is not here: install prometheus, or let `make boards` fetch it")
    return found


def run(*command: str | Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_alarm_has_its_stories() -> None:
    assert list(STORIES) == [each.name for each in alarms()]
    assert all(fires != quiet for fires, quiet in STORIES.values())


def test_the_rules_and_the_example_are_accepted(promtool: Path) -> None:
    assert "SUCCESS" in run(promtool, "check", "rules", *PROMETHEUS.glob("alerts*.yml"))
    assert "is valid" in run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")


def case(name: str, series: Series, expected: list[dict[str, object]]) -> dict[str, object]:
    """One test of promtool's, which compares the alarm's labels and texts, too."""
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [{"eval_time": f"{LONG.get(name, _AT)}m", "alertname": name, "exp_alerts": expected}],
    }


def _told(promtool: Path, place: Path, cases: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    rules = [str(path) for path in PROMETHEUS.glob("alerts*.yml")]
    file = place / "stories.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": rules, "evaluation_interval": "5m", "tests": cases}))
    return subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)


def test_no_alarm_fires_when_it_must_not(promtool: Path, tmp_path: Path) -> None:
    done = _told(promtool, tmp_path, [case(name, quiet, []) for name, (_, quiet) in STORIES.items()])
    assert done.returncode == 0, done.stdout


def test_every_alarm_fires_when_it_must_with_its_texts(promtool: Path, tmp_path: Path) -> None:
    """promtool names the alarms that it got where none was expected."""
    done = _told(promtool, tmp_path, [case(name, fires, []) for name, (fires, _) in STORIES.items()])
    told = done.stdout + done.stderr
    for alarm in alarms():
        _, found, rest = told.partition(f"alertname: {alarm.name},")
        got = rest.partition("alertname: ")[0]
        assert found, f"{alarm.name} does not fire\n{told}"
        assert f'alertname="{alarm.name}"' in got and f'severity="{alarm.severity}"' in got, got
        assert f"docs/runbook.md#{alarm.section}" in got and "<no value>" not in got, got
