from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.errors import StreamConfigError
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS
from segments.protocol.request_elements import ElementCounter

MANY = 1 << 30


def counted(message: Any) -> int:
    return ElementCounter(type(message)).count(message.SerializeToString(), MANY)


def elements(message: Any) -> int:
    """The same, by the parsed message."""
    found = 0
    for field, value in message.ListFields():
        values = list(value) if field.is_repeated else [value]
        found += len(values) if field.is_repeated else 0
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            found += sum(map(elements, values))
    return found


headers = st.lists(st.builds(pb.Header, name=st.text(max_size=3), value=st.binary(max_size=200)), max_size=4)
records = st.builds(
    pb.Record,
    value=st.binary(max_size=300),
    key=st.none() | st.binary(max_size=3),
    txid=st.none() | st.integers(0, 2**62),
    headers=headers,
)


@given(
    st.builds(
        pb.AppendRequest,
        stream=st.text(max_size=5),
        records=st.lists(records, max_size=5),
        values=st.lists(st.binary(max_size=300), max_size=5),
        crc32c=st.none() | st.integers(0, 2**32 - 1),
    )
)
def test_records_values_and_headers_are_counted(request: pb.AppendRequest) -> None:
    assert counted(request) == elements(request)


def test_counting_ends_at_the_limit() -> None:
    counter = ElementCounter(pb.AppendRequest)
    assert counter.count(b"\x12\x00" * 10, 10) == 10
    assert counter.count(b"\x12\x00\x92\x80\x00\x80\x00", 10) == 2, "a tag and a length may be longer than they need be"
    with pytest.raises(StreamConfigError, match="a request may have 10 records, headers and other repeated values"):
        counter.count(b"\x12\x00" * 11, 10)
    headers = b"\x1a\x00" * 11
    with pytest.raises(StreamConfigError, match="nothing of it was looked at"):
        counter.count(b"\x12" + bytes([len(headers)]) + headers, 10)


def test_numbers_side_by_side_count_by_their_bytes() -> None:
    """They have no tags. An old client may write each with its tag, too."""
    counter = ElementCounter(pb.RetentionSummary)
    field = pb.RetentionSummary.DESCRIPTOR.fields_by_name["deleted_ledgers"]
    side_by_side = pb.RetentionSummary(deleted_ledgers=[1, 2, 300]).SerializeToString()
    each = bytes([field.number << 3, 1]) * 3
    assert len(pb.RetentionSummary.FromString(each).deleted_ledgers) == 3
    assert (counter.count(side_by_side, 9), counter.count(each, 9)) == (4, 3)
    with pytest.raises(StreamConfigError):
        counter.count(side_by_side, 3)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_left_to_the_parser(raw: bytes) -> None:
    for method in METHODS.values():
        assert ElementCounter(method.request).count(raw, MANY) >= 0


def test_every_request_of_the_protocol_can_be_counted() -> None:
    """A type with others of it inside could not, and would be refused when the gateway starts."""
    for method in METHODS.values():
        ElementCounter(method.request)
    from google.protobuf.struct_pb2 import Struct

    with pytest.raises(ValueError, match="may have others of it inside"):
        ElementCounter(Struct)
