"""A bug is registered under its name, and says itself what it does."""

from __future__ import annotations

from bookkeeper.testing.patches import Patch
from tests.simulation.bugs.bug import Bug, bug_into


def test_what_a_bug_says_of_itself_is_what_it_does() -> None:
    bugs: dict[str, Bug] = {}

    @bug_into(bugs, "lazy", "K1", 30, 500)
    def lazy(patch: Patch) -> None:
        """Nothing
        is done."""

    assert bugs == {"lazy": Bug("lazy", "K1", 30, "Nothing is done.", lazy, 500)}
