"""A first start that is interrupted anywhere, any number of times, is repeated until it is whole."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from tests.bookkeeper.bookie.interrupted import KINDS, ON_CALL, ON_DISK, Interruption, run

VOLUMES: Final[dict[str, Any]] = {"ledger_dirs": ["/data/l1", "/data/l2"], "journal_dirs": ["/data/j1", "/data/j2"]}
POINTS = 140
"""About so many points a first start has."""

pytestmark = [pytest.mark.rule("F1", "F9", "K21")]


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_interrupted_once_goes_on(kind: str) -> None:
    points, _ = run([])
    assert POINTS - 10 < points < POINTS + 30, "the tests below reach every step"
    for at in range(KINDS.index(kind) % 8, points, 8):
        run([[Interruption(kind, at)]], seed=at)


@pytest.mark.parametrize("kind", [*ON_DISK[:2], *(kind for kind in ON_CALL if kind != "refused once")])
@pytest.mark.parametrize("at", [60, 114])
def test_one_that_is_refused_and_interrupted_while_it_is_undone_is_a_first_start_again(kind: str, at: int) -> None:
    """The cookie was removed from the metadata before that of the directories, and the files before both. A process
    that ended in between left a bookie that could never start again: its directory was "empty, but it has served
    before", or held "data of a bookie that the cluster has forgotten"."""
    for after in range(0, 24, 2):
        run([[Interruption("disk refuses", at), Interruption(kind, after)]])


def test_what_came_of_it_is_known_for_the_step_that_was_missed() -> None:
    _, happened = run([[Interruption("disk refuses", 60), Interruption("killed after", 1)]])
    assert "killed after at delete ('/ledgers/cookies/b1'" in happened[0]


def test_one_that_loses_the_store_keeps_what_it_has() -> None:
    """It was undone, journal files and all, and began at nothing each time: on a machine on which that takes longer
    than a session it never ended."""
    _, (refused, then) = run([[Interruption("disk refuses", 114)]])
    assert "DiskFullError" in refused and then == "a first start"
    lost = [then for at in (68, 131, 132) for then in [run([[Interruption("refused once", at)]])[1]]]
    ended = [then for error, then in lost if "MetadataUnavailableError" in error]
    assert ended and set(ended) == {"a later start"}


@pytest.mark.parametrize("options", [{}, VOLUMES], ids=["one directory", "several directories"])
@pytest.mark.parametrize("seed", range(12))
def test_any_interruptions_one_after_the_other(seed: int, options: dict[str, Any]) -> None:
    """With several directories a first start that was undone left its volumes in the published record: the next one
    took its new, empty directories for old ones that had lost everything."""
    chance = Random(seed)
    plans = [
        [Interruption(chance.choice(KINDS), chance.randrange(POINTS)), Interruption(chance.choice(KINDS), 10)]
        for _ in range(chance.choice([1, 2, 3]))
    ]
    run(plans, seed, **options)


def test_a_first_start_of_several_directories_that_was_undone_is_in_no_doubt() -> None:
    for at in (195, 205, 212):
        run([[Interruption("disk refuses", at)]], **VOLUMES)
