"""What is planted: real changes of the inside of functions, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutants.document import reasons
from tests.mutants.mutation import Mutation, mutations, planted
from tests.mutants.sample import PLACES, modules, sample

SOURCE = '''
import logging

log = logging.getLogger(__name__)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, many: int = 1) -> bool:
        """Says whether there is anything."""
        log.info("adding %d", many)
        assert many >= 0
        if many < 0 and self.count == 0:
            raise ValueError(f"not {many - 1}")
        self.count += many
        for _, number in zip("a", [0], strict=True):
            self.count += number
        return self.count > 0

    def __repr__(self) -> str:
        return f"{self.count + 1}"
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "counter.py"
    path.write_text(SOURCE)
    return path


def _named(found: list[Mutation], kind: str, before: str) -> Mutation:
    return next(mutation for mutation in found if mutation.kind == kind and mutation.before == before)


def test_what_runs_is_mutated_and_what_is_said_declared_or_asserted_is_not(module: Path) -> None:
    assert {(mutation.kind, mutation.before) for mutation in mutations(module)} == {
        ("statement deleted", "self.count = 0"),
        ("condition negated", "if many < 0 and self.count == 0"),
        ("and / or", "many < 0 and self.count == 0"),
        ("comparison", "many < 0"),
        ("comparison", "self.count == 0"),
        ("off by one", "0"),
        ("statement deleted", "raise ValueError(f'not {many - 1}')"),
        ("statement deleted", "self.count += many"),
        ("statement deleted", "self.count += number"),
        ("comparison", "self.count > 0"),
    }


def test_the_planted_code_replaces_that_of_a_function_that_lives(module: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "counter"}
    exec(compile(SOURCE, str(module), "exec"), namespace)
    counter = namespace["Counter"]()
    add: FunctionType = namespace["Counter"].add
    assert counter.add(2) and counter.count == 2

    add.__code__ = planted(_named(mutations(module), "statement deleted", "self.count += many"))

    assert counter.add(2) and counter.count == 2


def test_a_module_that_changed_meanwhile_is_refused(module: Path) -> None:
    mutation = _named(mutations(module), "comparison", "self.count > 0")
    module.write_text(SOURCE.replace("self.count > 0", "self.count > 7"))

    with pytest.raises(LookupError, match="has changed"):
        planted(mutation)


def test_the_choice_is_the_same_each_time_and_no_place_is_empty() -> None:
    first, second = sample(), sample()

    assert {place: len(some) for place, some in first.items()} == dict(PLACES)
    assert [one.key for some in first.values() for one in some] == [one.key for some in second.values() for one in some]


def test_each_chosen_mutation_can_be_planted() -> None:
    for some in sample(times=0.2).values():
        for mutation in some:
            assert planted(mutation).co_qualname == mutation.qualname


def test_a_reason_is_kept_only_for_what_can_still_be_planted() -> None:
    possible = {mutation.key for place in PLACES for path in modules(place) for mutation in mutations(path)}
    assert set(reasons()) - possible == set(), "remove these from tests/mutants/reasons.toml"


def test_a_place_that_moved_is_named() -> None:
    with pytest.raises(LookupError, match=r"correct PLACES"):
        modules("bookkeeper.nowhere")
