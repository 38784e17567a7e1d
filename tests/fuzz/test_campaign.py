"""A little of the campaign in each draw, and that it notices what it looks for."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.fuzz.campaign import CORPUS, MEMORY_FREE, campaign, changed, corpus_of, judge
from tests.fuzz.decoders import DECODERS, Decoder

SEED = int(os.environ.get("DRAW") or 1)
"""As the draw's number, so that twenty commits in a row look at twenty sets of changes."""


@pytest.mark.rule("X40", "X65")
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_changed_inputs_get_the_declared_error_or_are_taken(decoder: Decoder) -> None:
    ends = campaign(Random(SEED), 60, (decoder.name,))
    assert sum(ends.values()) >= 60


@pytest.mark.rule("X40")
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_what_the_corpus_has_is_what_the_decoder_takes(decoder: Decoder) -> None:
    """Inputs that once broke a decoder are there too, as ``broken-...``."""
    directory = CORPUS / decoder.name
    for path in sorted(directory.glob("*")):
        end = judge(decoder, path.read_bytes())
        assert end == "taken" or path.name.startswith("broken-"), path


def test_no_corpus_is_without_its_decoder() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= {decoder.name for decoder in DECODERS}
    assert sum(bool(corpus_of(decoder)) for decoder in DECODERS) >= 20


def test_the_campaign_notices_what_it_looks_for() -> None:
    def greedy(data: bytes) -> object:
        return bytearray(2 * MEMORY_FREE)

    answers = iter(range(100))

    def moody(data: bytes) -> object:
        if next(answers) % 2:
            raise ValueError
        return None

    def blunt(data: bytes) -> object:
        return data[7]

    with pytest.raises(AssertionError, match="greedy takes"):
        judge(Decoder("greedy", greedy, ()), b"")
    with pytest.raises(AssertionError, match="moody answers"):
        judge(Decoder("moody", moody, (ValueError,)), b"")
    with pytest.raises(IndexError) as found:
        judge(Decoder("blunt", blunt, (ValueError,)), b"x")
    assert "blunt does not declare IndexError; its input: b'x'" in found.value.__notes__


def test_changes_are_the_same_for_the_same_seed_and_differ_for_others() -> None:
    data = bytes(range(100))
    assert [changed(data, Random(seed)) for seed in range(50)] == [changed(data, Random(seed)) for seed in range(50)]
    assert len({changed(data, Random(seed)) for seed in range(50)}) > 40
    assert all(isinstance(changed(b"", Random(seed)), bytes) for seed in range(200))
