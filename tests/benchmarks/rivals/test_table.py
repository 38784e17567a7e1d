from __future__ import annotations

from benchmarks.rivals.table import BEGIN, END, ROWS, placed, ratio, section, table

BY_KEY = {row.key: row for row in ROWS}


def test_a_ratio_says_how_many_times_better_ours_is_whichever_way_is_better() -> None:
    assert ratio(BY_KEY["one"], 0.5, 1.0) == 2.0
    assert ratio(BY_KEY["1000"], 50_000, 100_000) == 0.5


def test_medians_stand_beside_each_other_with_their_spread_and_the_verdict() -> None:
    lines = table({"ours": {"one": [0.4, 0.3, 0.6], "100": [10.0]}, "Kafka": {"one": [2.0]}}).splitlines()
    assert lines[0] == "| | ours | Kafka | goal | |"
    assert lines[2] == "| 1 KB, one at a time, p50 | 0.4 ms (0.3–0.6) | 2 ms, **5×** | 0.5 ms | reached |"
    assert lines[3] == "| 1 KB, 100 in flight | 10 | – | 75,000 /s | *missed* |"


def test_what_was_not_measured_has_no_verdict() -> None:
    assert table({"Kafka": {"one": [2.0]}}).splitlines()[2].endswith("| – | 2 ms | 0.5 ms |  |")


def test_the_section_says_how_slow_the_disk_was_and_what_is_missing() -> None:
    text = section({"ours": {"one": [0.4]}}, {"Kafka": "there is no Java"}, [95.0, 190.0, 285.0])
    assert "took 95–285 µs, 2.0 times the 95 µs" in text
    assert "Kafka is left out: there is no Java." in text


def test_a_section_replaces_the_one_before() -> None:
    page = placed("before\n", "old") + "after\n"
    assert placed(page, "new") == f"before\n\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
