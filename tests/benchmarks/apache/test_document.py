"""The section of docs/benchmarks.md: between its markers, pictures included, what was lost too."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from benchmarks.apache.charts import Series, line_chart
from benchmarks.apache.document import BEGIN, END, PAGE, placed, section
from benchmarks.apache.summary import summarize


def test_only_what_is_between_the_markers_is_replaced() -> None:
    page = f"# Benchmarks\n\nbefore\n\n{BEGIN}\n\nold\n\n{END}\n\n## After\n"
    assert placed(page, "new") == f"# Benchmarks\n\nbefore\n\n{BEGIN}\n\nnew\n\n{END}\n\n## After\n"
    assert placed(placed(page, "a"), "b") == placed(page, "b")


def test_a_page_without_markers_gets_the_section_at_its_end() -> None:
    assert placed("# Benchmarks\n", "new") == f"# Benchmarks\n\n{BEGIN}\n\nnew\n\n{END}\n"


def test_the_page_has_a_place_for_it() -> None:
    page = PAGE.read_text()
    assert page.count(BEGIN) == page.count(END) == 1


def test_rows_that_apache_wins_are_named() -> None:
    records = [
        {"surroundings": "plain", "row": "read-random-v3", "side": side, "round": 1, "rate": rate, "others_cores": 0.0}
        for side, rate in (("ours", 20_000.0), ("shipped", 60_000.0), ("tuned", 50_000.0))
    ]
    text = section(summarize(records), records, [])
    assert "Rows that Apache wins, and by which figures (ours / Apache):\n\n* random reads of" in text
    assert "\n* random reads of 1 KB, 100 in flight, v3: /s 0.33\n" in text


def test_the_release_that_was_measured_is_named_and_older_runs_were_of_4_17_3() -> None:
    records: list[dict[str, Any]] = [
        {"surroundings": "plain", "row": "add-1024-1-v3", "side": side, "round": 1, "rate": 1.0, "others_cores": 0.0}
        for side in ("ours", "shipped", "tuned")
    ]
    assert "Apache BookKeeper 4.17.3\n" in section(summarize(records), records, [])
    named = [{"machine": "a machine", "apache": "4.18.0"}, *records]
    assert "Apache BookKeeper 4.18.0\n" in section(summarize(records), named, [])


def test_rows_that_apache_wins_elsewhere_say_where() -> None:
    records = [
        {"surroundings": "tls", "row": "tls-1", "side": side, "round": 1, "rate": rate, "others_cores": 0.0}
        for side, rate in (("ours", 20_000.0), ("shipped", 60_000.0), ("tuned", 50_000.0))
    ]
    text = section(summarize(records), records, [])
    assert "* adds of 1 KB, window 1, v3, with TLS on: /s 0.33\n" in text


def test_a_chart_is_well_formed_and_names_every_series() -> None:
    series = [
        Series("ours <v3>", "#000", [(1, 10, 9, 11), (1000, 1e5, 9e4, 1.1e5)]),
        Series("Apache", "#111", [(1, 5, 4, 6), (1000, 5e4, 4e4, 6e4)], dashed=True),
    ]
    root = ElementTree.fromstring(line_chart("adds", "window", "a second", series, str))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"ours <v3>", "Apache", "adds", "window", "a second"} <= set(texts)
