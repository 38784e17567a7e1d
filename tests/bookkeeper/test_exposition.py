from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bookkeeper.exposition import QUANTILES, page, server_page
from bookkeeper.metrics import Metrics


def shown(metrics: Metrics, accept: str = "") -> list[str]:
    return page(metrics, accept)[0].decode().splitlines()


def test_a_number_has_its_help_its_type_and_its_labels() -> None:
    metrics = Metrics("x_")
    metrics.counter("requests_total", "Requests.", op="read").add(2)
    metrics.counter("requests_total", op="add").add()
    metrics.gauge("level", "How high.").value = 0.5
    assert shown(metrics) == [
        "# HELP x_level How high.",
        "# TYPE x_level gauge",
        "x_level 0.5",
        "# HELP x_requests_total Requests.",
        "# TYPE x_requests_total counter",
        'x_requests_total{op="add"} 1.0',
        'x_requests_total{op="read"} 2.0',
    ]


def test_a_histogram_is_shown_by_its_bounds_its_sum_and_its_count() -> None:
    metrics = Metrics()
    metrics.histogram("seconds").observe(0.002, 3)
    lines = shown(metrics)
    assert 'seconds_bucket{le="0.001"} 0.0' in lines
    assert 'seconds_bucket{le="0.0025"} 3.0' in lines
    assert 'seconds_bucket{le="+Inf"} 3.0' in lines
    assert {"seconds_count 3.0", "seconds_sum 0.006"} <= set(lines)


def test_who_asks_for_openmetrics_gets_it() -> None:
    metrics = Metrics()
    metrics.counter("requests_total", "Requests.").add()
    text, kind = page(metrics, "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert page(metrics, "")[1].startswith("text/plain")


def test_a_summary_has_its_quantiles_and_those_without_values_are_none() -> None:
    metrics = Metrics()
    metrics.summary("took", "Milliseconds.", success="true").observe(2.0)
    metrics.summary("took", success="false")
    metrics.summary("took", success="true").turn()
    lines = shown(metrics)
    assert lines[:2] == ["# HELP took Milliseconds.", "# TYPE took summary"]
    assert 'took{quantile="0.5",success="false"} NaN' in lines
    assert {'took_count{success="true"} 1.0', 'took_sum{success="true"} 2.0'} <= set(lines)
    (family,) = text_string_to_metric_families("\n".join(lines) + "\n")
    values = {
        (sample.labels["success"], sample.labels["quantile"]): sample.value
        for sample in family.samples
        if "quantile" in sample.labels
    }
    assert len(values) == 2 * len(QUANTILES)
    assert values["true", "0.99"] == pytest.approx(2.0, rel=0.01)


def test_a_server_s_page_has_the_numbers_of_its_process_too() -> None:
    metrics = Metrics()
    metrics.counter("requests_total", "Requests.").add()
    names = {line.split()[0] for line in server_page(metrics, "")[0].decode().splitlines() if line[0] != "#"}
    assert {"requests_total", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"} <= names
    assert {"process_max_fds", "process_start_time_seconds"} <= names


def test_any_label_is_read_back_and_each_name_has_one_type() -> None:
    """What apache/bookkeeper#2718 tells: a stray comma, or two types of one name, and the whole page is refused."""
    odd = ('a "quote"', "a \\ backslash", "two\nlines", "a,comma={}", "")
    metrics = Metrics("x_")
    for value in odd:
        metrics.counter("requests_total", "Requests.", who=value).add()
        metrics.summary("took", "Milliseconds.", who=value)
    text = "\n".join(shown(metrics)) + "\n"
    families = list(text_string_to_metric_families(text))
    assert [family.name for family in families] == ["x_requests", "x_took"]
    for family in families:
        assert {sample.labels["who"] for sample in family.samples} == set(odd)
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
