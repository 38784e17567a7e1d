"""The table of behaviours in docs/streams.md: each has a test that exists, or a reason."""

from __future__ import annotations

from tests.architecture.stream_behaviours import COUNT, TEST, missing_tests, named, rows


def test_every_behaviour_is_there_in_order() -> None:
    assert list(rows()) == [f"SEG-{number:02d}" for number in range(1, COUNT + 1)]


def test_every_test_that_is_named_exists() -> None:
    assert {name: missing for name, cell in rows().items() if (missing := missing_tests(cell))} == {}


def test_a_behaviour_without_a_test_has_a_reason() -> None:
    for name, cell in rows().items():
        if not TEST.search(cell):
            kind, _, reason = cell.partition(": ")
            assert kind in ("no test", "the next piece", "not planned") and len(reason) > 10, (name, cell)


def test_a_test_names_only_behaviours_that_are_there_and_none_of_them_is_without() -> None:
    table = rows()
    assert sorted(set(named()) - set(table)) == []
    assert [name for name in named() if not TEST.search(table[name])] == []
