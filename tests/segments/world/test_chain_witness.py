from __future__ import annotations

from dataclasses import replace

import pytest

from segments.chain import StreamChain
from segments.position import Position
from tests.segments.chain.test_stream_chain import chain_of, contents
from tests.segments.world.chain_witness import ChainWitness


def seen(*versions: StreamChain) -> ChainWitness:
    witness = ChainWitness()
    for version in versions:
        witness.see(version)
    return witness


def test_a_legal_history_is_no_problem() -> None:
    one = chain_of(3, opened=True)
    two = one.complete(2, contents(1), 5).allocate(50)
    claimed = two.claim("b", "n2").discard_next()
    three = claimed.start_segment(60, 6)
    four = three.truncate(Position(2, 0, 0)).remove(1)
    witness = seen(one, two, claimed, three, four, four.forget([11, 50]))
    assert witness.problems == [] and witness.claims == 1 and witness.named == {11, 12, 50, 60}


BASE = chain_of(3, 3, opened=True)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (replace(BASE, epoch=0), "C5"),
        (replace(BASE, recent=(*BASE.recent[:2], replace(BASE.recent[2], start_seq_no=5))), "C7"),
        (replace(BASE, recent=(replace(BASE.recent[0], ledger_id=99), *BASE.recent[1:])), "C7"),
        (replace(BASE, recent=BASE.recent[1:]), "C6"),
        (replace(BASE, epoch=2, recent=BASE.recent[:2]), "C2"),
        (
            replace(BASE, recent=(*BASE.recent[:2], replace(BASE.recent[2], number=4, epoch=0)), next_number=5),
            "C5",
        ),
    ],
)
def test_an_illegal_step_is_found(after: StreamChain, what: str) -> None:
    assert any(problem.startswith(what) or f"rule {what}" in problem for problem in seen(BASE, after).problems)


def test_a_beginning_that_goes_back_and_a_sealed_stream_that_grows_are_found() -> None:
    cut = BASE.truncate(Position(2, 0, 0))
    assert "began" in seen(cut, BASE).problems[0]
    done = chain_of(3)
    assert "sealed" in seen(done.seal(), done.start_segment(50, 1)).problems[0]


def test_a_ledger_that_is_deleted_too_early_and_an_answer_that_comes_too_early_are_found() -> None:
    witness = seen(BASE, BASE.truncate(Position(2, 0, 0)).remove(1))
    witness.see_deleted(11)
    witness.see_acknowledged(3)
    assert witness.problems == []
    witness.see_deleted(12)
    witness.see_acknowledged(4)
    assert [problem[:2] for problem in witness.problems] == ["C6", "C1"]
