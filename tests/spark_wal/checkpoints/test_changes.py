from __future__ import annotations

import struct

import pytest

from spark_wal.checkpoints.changes import changes_digest
from tests.spark_wal.checkpoints.samples import WITH_STATE, SampleStore
from tests.spark_wal.checkpoints.test_lz4_blocks import stream


@pytest.mark.parametrize("name", WITH_STATE)
def test_the_changes_of_every_step_that_spark_wrote_are_read(name: str) -> None:
    steps = {path: data for path, data in SampleStore(name).files.items() if path.endswith((".delta", ".changelog"))}
    digests = {path: changes_digest(data) for path, data in steps.items()}
    assert digests and None not in digests.values()
    assert len(set(digests.values())) > len(steps) // 2, "different steps have different digests"


def change(key: bytes, value: bytes | None, kind: bytes = b"") -> bytes:
    end = struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return kind + struct.pack(">i", len(key)) + key + end


ENDS = struct.pack(">i", -1)
PUT, REMOVE = change(b"a", b"1"), change(b"b", None)


def test_the_order_of_changes_does_not_count_and_each_change_does() -> None:
    both = changes_digest(stream(PUT + REMOVE + ENDS, b""))
    assert both == changes_digest(stream(REMOVE + PUT + ENDS, b"")) is not None
    others = [PUT, REMOVE, PUT + change(b"b", b""), change(b"a", b"2") + REMOVE, PUT + REMOVE + PUT]
    assert both not in [changes_digest(stream(each + ENDS, b"")) for each in others]


def test_the_versions_that_a_changelog_names_do_not_count() -> None:
    one = b"\x00\x02v3" + struct.pack(">H", 4) + b"[{1]" + PUT + ENDS
    other = b"\x00\x02v3" + struct.pack(">H", 2) + b"[]" + PUT + ENDS
    digests = {changes_digest(stream(plain, b"")) for plain in (one, other, PUT + ENDS)}
    assert len(digests) == 1 and None not in digests
    kinds = b"\x00\x02v2" + change(b"a", b"1", b"\x01") + change(b"b", None, b"\x02") + b"\x00"
    assert str(changes_digest(stream(kinds, b""))).startswith("v2 ")


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        PUT,
        ENDS + b"x",
        b"\x00\x02v9" + ENDS,
        b"\x00\x02v2\x01" + ENDS,
        struct.pack(">i", 9) + b"a",
        b"\xff\xff\xff\xfe",
    ],
)
def test_what_is_none_of_the_formats_is_not_compared(plain: bytes) -> None:
    assert changes_digest(stream(plain, b"") if plain else stream(b"")) is None
    assert changes_digest(b"PK") is None
