from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import IllegalArgumentError
from spark_wal.webhdfs.files.numbered import (
    LIMITS_MAX,
    NumberLimit,
    limits_text,
    listing_digest,
    parse_limits,
    removed_by,
)

LIMITS = (NumberLimit("offsets", 4), NumberLimit("state/*/*", 5))


def test_a_number_is_what_a_name_begins_with_and_directories_count_exactly() -> None:
    gone = ["offsets/10", "offsets/5", "state/0/1/6.delta", "state/0/1/7_id.zip.crc"]
    stay = ["offsets/4", "offsets/x5", "offsets/5-x.sst", "offsets/.9.tmp", "deep/offsets/9", "state/0/6.delta"]
    stay += ["state/0/1/5_id.zip", "state/0/1/left/9.delta", "9", "offsets/9x"]
    assert removed_by(LIMITS, [*stay, *gone]) == gone


def test_limits_survive_their_text() -> None:
    assert parse_limits(limits_text(LIMITS)) == LIMITS


TOO_MANY = ",".join(["a:1"] * (LIMITS_MAX + 1))


@pytest.mark.parametrize("text", ["", "offsets", "offsets:", "offsets:-1", "a:1,", ":1", TOO_MANY])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match="DIRECTORIES:NUMBER"):
        parse_limits(text)


def test_a_digest_tells_of_each_change_and_not_of_the_order() -> None:
    files = [("a", 1, 2), ("b", 3, 4)]
    assert listing_digest(files) == listing_digest(reversed(files))
    others = [[("a", 1, 2)], [("a", 1, 2), ("b", 3, 5)], [("a", 1, 2), ("b", 4, 4)], [("a", 1, 2), ("c", 3, 4)]]
    assert len({listing_digest(each) for each in (files, *others)}) == 5
