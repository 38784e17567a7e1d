"""Bits that are flipped."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from examples.demo_heal.damage import damage_entries, flip_bits


def test_as_many_bits_are_flipped_as_asked_for_and_none_in_a_header(tmp_path: Path) -> None:
    sizes = {"000001.log": 50_000, "000002.log": 4096, "000003.log": 9_000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    flipped = flip_bits(tmp_path, 50, Random(1))
    assert len(set(flipped)) == 50
    assert {each.log for each in flipped} == {"000001.log", "000003.log"}
    ones = 0
    for name, size in sizes.items():
        data = (tmp_path / name).read_bytes()
        assert len(data) == size and not any(data[:4096])
        ones += int.from_bytes(data, "big").bit_count()
    assert ones == 50


def test_a_directory_without_entries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "000001.log").write_bytes(bytes(4096))
    with pytest.raises(ValueError, match="no entry logs"):
        flip_bits(tmp_path, 1, Random(1))


def test_every_copy_of_certain_entries_is_damaged_and_nothing_else(tmp_path: Path) -> None:
    whole = b"head" + b"one entry" + b"another" + b"one entry" + b"tail"
    (tmp_path / "000001.log").write_bytes(whole)
    (tmp_path / "000002.log").write_bytes(b"...another...")
    assert damage_entries(tmp_path, [b"another", b"not there"], Random(1)) == 1
    first, second = ((tmp_path / f"00000{number}.log").read_bytes() for number in (1, 2))
    assert b"another" not in first + second
    assert (first[:13], first[20:], len(first)) == (whole[:13], whole[20:], len(whole))
    assert (second[:3], second[-3:], len(second)) == (b"...", b"...", 13)
