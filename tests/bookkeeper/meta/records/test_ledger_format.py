from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.digest import DigestType
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import metadata_pb2 as pb
from bookkeeper.meta.records.ledger_format import decode, encode
from tests.bookkeeper.meta.services import load

VECTORS = load("ledger_metadata.json")
SERIALIZED = [item for item in VECTORS["serialized"] if "hex" in item]
JAVA_IS_LAXER = ("version 2, closed, no lastEntryId",)
"""Java reads an end of 0 that nobody wrote."""


def as_java_says(metadata: LedgerMetadata) -> dict[str, Any]:
    return {
        "format_version": metadata.format_version,
        "state": metadata.state.name,
        "ensemble_size": metadata.spec.ensemble_size,
        "write_quorum": metadata.spec.write_quorum,
        "ack_quorum": metadata.spec.ack_quorum,
        "length": metadata.length,
        "last_entry_id": metadata.last_entry,
        "ctime": -1 if metadata.ctime_ms is None else metadata.ctime_ms,
        "ctoken": metadata.creator_token,
        "has_password": metadata.has_password,
        "digest_type": None if metadata.digest_type is None else metadata.digest_type.name.replace("HMAC", "MAC"),
        "password_hex": None if metadata.password is None else metadata.password.hex(),
        "segments": [{"first_entry_id": f.first_entry, "ensemble": list(f.ensemble)} for f in metadata.fragments],
        "custom_metadata": {key: value.hex() for key, value in metadata.custom.items()},
    }


def without_id(java: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in java.items() if key != "ledger_id"}


@pytest.mark.rule("M7")
@pytest.mark.parametrize("item", SERIALIZED, ids=lambda item: item["name"])
def test_what_java_wrote_is_read_as_java_reads_it_and_written_again_as_it_was(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    metadata = decode(data)
    assert as_java_says(metadata) == without_id(item["java_reads_back"])
    assert encode(metadata) == data


@pytest.mark.rule("M4")
@pytest.mark.parametrize("item", VECTORS["parse"], ids=lambda item: item["what"])
def test_odd_and_broken_bytes_are_read_or_refused_as_in_java(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    if "error" in item["java_result"] or item["what"] in JAVA_IS_LAXER:
        with pytest.raises(MetadataFormatError):
            decode(data)
    else:
        assert as_java_says(decode(data)) == without_id(item["java_result"])


def new_ledger() -> LedgerMetadata:
    spec = QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2)
    return LedgerMetadata.create(spec, [BookieId("a:1"), BookieId("b:1"), BookieId("c:1")], password=b"p")


@pytest.mark.rule("M7")
def test_fields_we_do_not_know_survive_a_change() -> None:
    data = encode(new_ledger())
    head, size, body = data[:30], data[30], data[31:]
    unknown = bytes.fromhex("a00607aa06026869")  # field 100 = 7, field 101 = "hi"
    metadata = decode(head + bytes([size + len(unknown)]) + body + unknown)
    assert metadata.unknown == unknown
    changed = metadata.begin_recovery()
    assert decode(encode(changed)) == changed
    assert encode(changed).endswith(unknown)


@pytest.mark.rule("M7")
def test_fields_inside_segments_and_custom_entries_that_we_do_not_know_survive_every_change() -> None:
    message = pb.LedgerMetadataFormat()
    data = encode(replace(new_ledger(), custom={"app": b"x", "plain": b"y"}))
    message.ParseFromString(data[31:])
    message.segment[0].MergeFromString(bytes.fromhex("a00607"))  # field 100 = 7
    message.customMetadata[0].MergeFromString(bytes.fromhex("aa06026869"))  # field 101 = "hi"
    body = message.SerializeToString()
    assert len(body) < 128
    metadata = decode(data[:30] + bytes([len(body)]) + body)
    replaced = metadata.change_ensemble(0, [BookieId("d:1"), BookieId("e:1"), BookieId("f:1")])
    grown = replaced.change_ensemble(5, [BookieId("a:1"), BookieId("b:1"), BookieId("c:1")])
    closed = grown.begin_recovery().close_recovered(9, 90)
    repaired = closed.swap_bookie(0, BookieId("d:1"), BookieId("g:1"))
    for changed in (metadata, replaced, grown, closed, repaired):
        again = pb.LedgerMetadataFormat()
        again.ParseFromString(encode(changed)[31:] if len(encode(changed)) < 159 else encode(changed)[32:])
        assert b"\xa0\x06\x07" in again.segment[0].SerializeToString()
        assert b"\xaa\x06\x02hi" in again.customMetadata[0].SerializeToString()
        assert b"\xaa\x06\x02hi" not in again.customMetadata[1].SerializeToString()
        assert decode(encode(changed)) == changed


def test_a_value_that_was_cut_off_is_no_ledger() -> None:
    """Not one with fewer fragments, or without what its creator said of it."""
    spec = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
    made = LedgerMetadata.create(spec, [BookieId("a:1")], custom={"k": b"v"}, creator_token=5)
    value = encode(made.change_ensemble(5, [BookieId("b:1")]))
    for end in range(len(value)):
        with pytest.raises(MetadataFormatError):
            decode(value[:end])


def test_a_digest_type_we_do_not_know_is_not_taken_for_another() -> None:
    data = encode(new_ledger())
    assert b"\x38\x03" in data
    with pytest.raises(MetadataFormatError, match="digest type"):
        decode(data.replace(b"\x38\x03", b"\x38\x09"))


@pytest.mark.parametrize("version", [2, 3])
def test_versions_2_and_3_have_no_place_for_a_ledger_without_digest(version: int) -> None:
    with pytest.raises(MetadataFormatError):
        encode(replace(new_ledger(), digest_type=None, password=None, format_version=version))


@given(st.binary(max_size=80))
def test_no_bytes_do_anything_but_raise_the_format_error(tail: bytes) -> None:
    for version in b"1", b"2", b"3":
        try:
            decode(b"BookieMetadataFormatVersion\t" + version + b"\n" + tail)
        except MetadataFormatError:
            pass


IDS = st.from_regex(r"[a-z]{1,8}:[0-9]{1,4}", fullmatch=True).map(BookieId)


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size = draw(st.integers(1, 4))
    write = draw(st.integers(1, size))
    spec = QuorumSpec(ensemble_size=size, write_quorum=write, ack_quorum=draw(st.integers(1, write)))
    firsts = sorted(draw(st.sets(st.integers(1, 2**62), max_size=3)) | {0})
    fragments = tuple(
        Fragment(EntryId(first), tuple(draw(st.lists(IDS, min_size=size, max_size=size, unique=True))))
        for first in firsts
    )
    state = draw(st.sampled_from(LedgerState))
    closed = state is LedgerState.CLOSED
    return LedgerMetadata(
        spec=spec,
        state=state,
        fragments=fragments,
        length=draw(st.integers(0, 2**62)) if closed else 0,
        last_entry=EntryId(firsts[-1] + draw(st.integers(-1, 2**61))) if closed else NO_ENTRY,
        digest_type=draw(st.sampled_from(DigestType)),
        password=draw(st.binary(max_size=20)),
        ctime_ms=draw(st.none() | st.integers(0, 2**62)),
        custom=draw(st.dictionaries(st.text(max_size=5), st.binary(max_size=9), max_size=3)),
        creator_token=draw(st.integers(0, 2**63 - 2)),
    )


@pytest.mark.rule("M7")
@given(ledgers())
def test_decoding_undoes_encoding(metadata: LedgerMetadata) -> None:
    assert decode(encode(metadata)) == metadata
    text = replace(metadata, format_version=2, creator_token=0)
    assert decode(encode(text)) == text
