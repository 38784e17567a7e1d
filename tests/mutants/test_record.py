"""An earlier outcome counts for the very bug that it was of, and only if a test had noticed that."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.mutation import mutations
from tests.mutants.record import Record
from tests.mutants.session import Outcome

SOURCE = "def is_more(one: int, other: int) -> bool:\n    return one > other\n"


def test_what_was_noticed_counts_while_the_module_is_the_same(tmp_path: Path) -> None:
    module, file = tmp_path / "comparing.py", tmp_path / "outcomes"
    module.write_text(SOURCE)
    [mutation] = mutations(module)
    Record(file).add(Outcome(mutation, "test_is_more", 3, 0.5))

    assert Record(file).noticed(mutation) == Outcome(mutation, "test_is_more", 3, 0.5)

    module.write_text(SOURCE + "\n\nLEAST = 0\n")
    [changed] = mutations(module)
    assert Record(file).noticed(changed) is None


def test_what_survived_is_planted_again(tmp_path: Path) -> None:
    module, file = tmp_path / "comparing.py", tmp_path / "outcomes"
    module.write_text(SOURCE)
    [mutation] = mutations(module)
    Record(file).add(Outcome(mutation, "test_is_more", 3, 0.5))
    Record(file).add(Outcome(mutation, "", 3, 0.5))

    assert Record(file).noticed(mutation) is None
