"""Group numbers without a gap; what a gap, a damaged group and an unfinished last one mean."""

from __future__ import annotations

import pytest

from bookkeeper.storage.base.manifest import Manifest, ManifestLog
from bookkeeper.storage.base.results import NOTHING_KNOWN, PublishedProgress
from bookkeeper.storage.journal.group_writer import journal_name
from bookkeeper.storage.journal.journal_format import DamagedStretch
from bookkeeper.storage.start.group_continuity import GroupContinuity
from bookkeeper.storage.start.losses import StartLosses
from tests.bookkeeper.storage.workload import CONFIG

MARK = Manifest(boot=3, file_id=2, sequence=10, logs={1: ManifestLog(4096)})
NO_MARK = Manifest(rebuild=True, logs={1: ManifestLog(4096)})


def replay(
    before: Manifest = MARK, *, clean: bool = False, no_manifest: str | None = None
) -> tuple[GroupContinuity, StartLosses]:
    losses = StartLosses()
    losses.journal_begins()
    return GroupContinuity(CONFIG, before, losses, clean=clean, no_manifest=no_manifest), losses


def tail(sequence: int = 0, *, claims: int = 0, last: bool = True) -> DamagedStretch:
    return DamagedStretch(8192, 16384, last, begun=sequence > 0, claims=claims, sequence=sequence)


@pytest.mark.rule("K13", "K10")
def test_covered_groups_are_passed_over_and_the_others_replayed_once() -> None:
    groups, losses = replay()
    assert [groups.group(sequence, "f") for sequence in (9, 10, 11, 12, 12, 13)] == [
        False, False, True, True, False, True,
    ]  # fmt: skip
    assert groups.last == 13 and not losses.damaged


@pytest.mark.rule("K9", "K18")
def test_a_number_that_is_passed_over_was_durable_and_is_gone() -> None:
    groups, losses = replay()
    assert groups.group(13, "/journal/3") and groups.last == 13
    assert losses.lost == ["groups 11 to 12 before /journal/3 are damaged or missing"]
    assert losses.quarantined == ["groups 11 to 12"]


@pytest.mark.rule("K9")
def test_a_file_that_begins_later_says_the_same_before_its_first_group_is_read() -> None:
    groups, losses = replay()
    groups.file_begins(11, "f")
    assert not losses.damaged
    groups.file_begins(14, "f")
    assert losses.quarantined == ["groups 11 to 13"] and groups.group(14, "f")


@pytest.mark.rule("K9")
def test_a_torn_groups_header_says_what_was_durable_before_it() -> None:
    groups, losses = replay()
    assert groups.unreadable(tail(13, claims=12), "f") is None
    assert losses.quarantined == ["groups 11 to 12"] and groups.torn is None


@pytest.mark.rule("K8", "K9")
def test_an_unfinished_last_group_is_cut_and_was_never_acknowledged() -> None:
    groups, losses = replay()
    assert groups.unreadable(tail(11), "f") == 11
    groups.judged("f at 8192", True, 11, None)
    groups.ended(None)
    assert groups.torn == "f at 8192: the last group is not whole" and groups.last == 10 and not losses.damaged


@pytest.mark.rule("K9")
def test_where_nothing_was_begun_the_next_group_is_looked_for_and_its_absence_says_nothing() -> None:
    groups, losses = replay()
    assert groups.unreadable(tail(), "f") == 11
    groups.judged("f at 8192", False, 11, None)
    assert groups.torn is None and not losses.damaged


@pytest.mark.rule("K9", "K18")
@pytest.mark.parametrize(("number", "last"), [(11, 11), (14, 14), (0, 11)])
def test_a_proof_makes_of_it_a_loss_and_the_number_is_not_given_out_again(number: int, last: int) -> None:
    groups, losses = replay()
    groups.judged("f at 8192", True, number, "a sector of zeros")
    assert groups.last == last and groups.torn is None
    assert "had been durable is damaged or missing (a sector of zeros)" in str(losses.limbo)
    assert losses.quarantined == ["f at 8192"]


def test_a_damaged_stretch_before_other_groups_or_below_the_mark_is_left_to_their_numbers() -> None:
    groups, losses = replay()
    assert groups.unreadable(tail(11, last=False), "f") is None
    assert groups.unreadable(tail(9), "f") is None
    assert not losses.damaged


def test_a_group_in_a_later_file_shows_that_the_torn_one_was_none() -> None:
    groups, losses = replay()
    groups.judged("f at 8192", True, 11, None)
    torn = [groups.torn]
    assert groups.group(11, "g")
    torn.append(groups.torn)
    assert torn == ["f at 8192: the last group is not whole", None] and not losses.damaged


@pytest.mark.rule("K18", "K9")
def test_a_clean_stop_leaves_no_unfinished_group() -> None:
    groups, losses = replay(clean=True)
    groups.judged("f at 8192", True, 11, None)
    groups.ended(None)
    assert losses.limbo == "after a clean stop: f at 8192: the last group is not whole"


@pytest.mark.rule("K9")
def test_evidence_elsewhere_makes_the_end_of_the_journal_a_loss() -> None:
    groups, losses = replay()
    groups.group(11, "f")
    groups.ended("a log holds more")
    assert "/journal behind group 11: a group that had been durable" in str(losses.limbo)
    assert groups.last == 12


# -- which files are read -------------------------------------------------------------------------------------


def test_files_behind_the_mark_are_read_and_the_marks_own_must_be_there() -> None:
    groups, losses = replay()
    assert groups.files([1, 2, 3]) == [2, 3] and not losses.damaged
    assert groups.files([1, 3]) == [3]
    assert losses.lost == [f"{journal_name(2)} is missing"]
    groups, losses = replay(clean=True)
    assert groups.files([1]) == [] and not losses.damaged, "after a clean stop nothing is needed of it"


@pytest.mark.rule("K15", "K19")
def test_without_a_mark_the_journal_begins_where_its_oldest_file_says() -> None:
    groups, losses = replay(NO_MARK)
    assert groups.files([4, 5]) == [4, 5]
    groups.file_begins(40, "f")
    assert groups.last == 39 and not losses.damaged
    groups.file_begins(50, "g")
    assert losses.quarantined == ["groups 40 to 49"], "only the first one is believed"


@pytest.mark.rule("K19", "B5")
def test_earlier_groups_without_any_entry_log_are_a_loss() -> None:
    groups, losses = replay(Manifest(rebuild=True))
    groups.file_begins(1, "f")
    assert not losses.damaged
    groups, losses = replay(Manifest(rebuild=True))
    groups.file_begins(40, "f")
    assert losses.limbo == "/ledgers holds no entry logs"


# -- what is known elsewhere ----------------------------------------------------------------------------------


@pytest.mark.rule("K32")
@pytest.mark.parametrize(
    ("known", "said"),
    [
        (NOTHING_KNOWN, None),
        (PublishedProgress(boot=3, sequence=10), None),
        (PublishedProgress(boot=4), "knows of start 3"),
        (PublishedProgress(sequence=11), "11 groups were durable, 10 are known here"),
    ],
)
def test_a_directory_that_knows_less_was_put_back(known: PublishedProgress, said: str | None) -> None:
    groups, losses = replay()
    groups.compare(known)
    assert (losses.limbo is None) if said is None else (said in str(losses.limbo))
    assert groups.last == max(10, known.sequence)


@pytest.mark.rule("K32", "B5")
@pytest.mark.parametrize(
    ("before", "known", "lost"),
    [
        (Manifest(), NOTHING_KNOWN, False),
        (Manifest(), PublishedProgress(boot=1), True),
        (NO_MARK, NOTHING_KNOWN, True),
        (Manifest(next_segment=2), NOTHING_KNOWN, True),
    ],
)
def test_without_its_manifest_only_an_empty_directory_is_whole(
    before: Manifest, known: PublishedProgress, lost: bool
) -> None:
    groups, losses = replay(before, no_manifest="/ledgers/manifest is missing")
    groups.compare(known)
    assert (losses.limbo is not None) is lost
