"""The alarms for Prometheus ask for what there is, and each names a section of the runbook that is there."""

from __future__ import annotations

import re

from tests.boards.deployed import PROMETHEUS, ROOT, alarms, read_yaml
from tests.boards.promql import named
from tests.boards.shown_metrics import FROM_PROMETHEUS, shown

RUNBOOK = (ROOT / "docs/runbook.md").read_text()


def sections() -> dict[str, str]:
    """Anchor -> heading."""
    heads = re.findall(r"^## (.*)$", RUNBOOK, flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-"): head for head in heads}


def test_every_alarm_asks_for_metrics_that_exist() -> None:
    for alarm in alarms():
        found = named(alarm.query)
        assert found.names | found.patterns, alarm.name
        assert found.names - shown() - FROM_PROMETHEUS == set(), alarm.name
        for pattern in found.patterns:
            assert any(re.fullmatch(pattern, name) for name in shown()), alarm.name


def test_every_alarm_names_a_section_of_the_runbook_with_its_three_parts() -> None:
    for alarm in alarms():
        heading = sections().get(alarm.section)
        assert heading is not None, f"{alarm.name}: the runbook has no section {alarm.section}"
        text = RUNBOOK.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        assert all(part in text for part in ("**Symptom.**", "**Meaning.**", "**Action.**")), heading


def test_the_runbook_s_table_of_alarms_is_that_of_the_rules() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w ]+) \| \[(.*)\]\(#(.*)\) \|$", RUNBOOK, flags=re.MULTILINE)
    heads = sections()
    assert rows == [(each.name, each.severity, each.after, heads[each.section], each.section) for each in alarms()]


def test_alarms_have_names_of_their_own_a_severity_and_a_sentence() -> None:
    names = [each.name for each in alarms()]
    assert len(names) == len(set(names)) > 20
    assert {each.severity for each in alarms()} == {"warning", "critical"}
    assert all(re.fullmatch(r"([A-Z][a-z]+)+", name) for name in names)
    assert all(each.summary and not each.summary.endswith(".") for each in alarms())


def test_the_example_scrapes_every_kind_of_server_under_the_jobs_that_the_rules_name() -> None:
    config = read_yaml(PROMETHEUS / "prometheus.yml")
    jobs = {each["job_name"] for each in config["scrape_configs"]}
    assert jobs == {"bookies", "autorecovery", "spark-gateways", "stream-gateways"}
    asked = {
        job for alarm in alarms() for words in re.findall(r'job=~?"([^"]+)"', alarm.query) for job in words.split("|")
    }
    assert asked and asked <= jobs
    assert config["rule_files"] == [path.name for path in sorted(PROMETHEUS.glob("alerts*.yml"))]
    for each in config["scrape_configs"]:
        for group in each["static_configs"]:
            assert group["labels"].keys() == {"cluster"}, "the board and the rules tell clusters apart by it"
