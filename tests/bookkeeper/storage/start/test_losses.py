"""What is missing or damaged, and what may still go."""

from __future__ import annotations

import pytest

from bookkeeper.storage.start.losses import StartLosses


@pytest.mark.rule("G4")
def test_nothing_found_means_that_what_nobody_names_may_go() -> None:
    losses = StartLosses()
    losses.journal_begins()
    assert not (losses.damaged or losses.keep_journals or losses.journal_broken) and losses.limbo is None


@pytest.mark.rule("G4", "B9")
def test_what_an_earlier_start_has_found_keeps_the_journal_and_is_no_new_damage() -> None:
    losses = StartLosses()
    losses.known_before(["a log is missing"])
    assert [losses.keep_journals, losses.damaged] == [True, False]
    losses.lost.append("a log is missing")
    assert [losses.keep_journals, losses.damaged] == [True, False], "the same again"
    losses.lost.append("groups 3 to 4 are missing")
    assert [losses.keep_journals, losses.damaged] == [True, True]
    assert losses.limbo == "a log is missing; groups 3 to 4 are missing", "each once"


@pytest.mark.rule("G4")
def test_a_damaged_place_is_damage_though_nothing_is_lost() -> None:
    losses = StartLosses()
    losses.quarantined.append("manifest")
    assert losses.damaged and losses.keep_journals and losses.limbo is None


@pytest.mark.parametrize("what", ["lost", "quarantined"])
def test_the_journal_is_broken_only_if_something_was_found_while_it_was_read(what: str) -> None:
    losses = StartLosses()
    getattr(losses, what).append("before")
    seen = [losses.journal_broken]
    losses.journal_begins()
    seen.append(losses.journal_broken)
    getattr(losses, what).append("behind the mark")
    seen.append(losses.journal_broken)
    assert seen == [False, False, True]
