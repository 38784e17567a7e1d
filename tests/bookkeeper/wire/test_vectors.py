"""Frames captured from Apache BookKeeper 4.17.3: each decodes to its fields and encodes to its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.codec.shapes import FRAME_MAX
from bookkeeper.errors import MalformedFrameError
from bookkeeper.wire import (
    AddEntry,
    AddReply,
    Auth,
    AuthReply,
    BareReply,
    BatchRead,
    BatchReply,
    Dialect,
    DialectDetector,
    ForceLedger,
    ForceReply,
    GetBookieInfo,
    InfoReply,
    LacReply,
    ListEntries,
    ListReply,
    Operation,
    ReadEntry,
    ReadLac,
    ReadReply,
    RefusedFrame,
    Reply,
    Request,
    RequestHeader,
    StartTls,
    StartTlsReply,
    WriteLac,
    WriteLacReply,
    decode_reply,
    encode_reply,
    encode_request,
    failure,
)
from bookkeeper.wire.bookkeeper_pb2 import OperationType, StatusCode
from bookkeeper.wire.status import TO_V2, TO_V3, Status
from tests.bookkeeper.wire.framer import Framer

Fields = dict[str, Any]

VECTORS = Path(__file__).parents[2] / "vectors"
FILES = {name: json.loads((VECTORS / f"{name}.json").read_text()) for name in ("wire_v2", "wire_v3")}
V2_OPCODES = {
    Operation.ADD: "ADDENTRY",
    Operation.READ: "READENTRY",
    Operation.AUTH: "AUTH",
    Operation.BATCH_READ: "BATCH_READ_ENTRY",
}

STRICTER = {
    "raw/add-short-entry-24-bytes": Status.BAD_REQUEST,  # an entry has at least 32 bytes
    "raw/add-ids-differ-from-body": Status.BAD_REQUEST,  # the ids of an add are those in its body
    "raw/add-short-master-key": Status.UNAUTHORIZED,  # a master key has 20 bytes
    "batch/last-entry-minus-one": Status.BAD_REQUEST,  # a batch begins at an entry
}
"""Exchanges that Apache's bookie serves and ours refuses, with this status."""


def official_frames() -> Iterator[Any]:
    """Every frame that an official program made, once."""
    seen = set()
    for file, data in FILES.items():
        items = [("exchange", e) for e in data["exchanges"]] + [("session", e) for e in data["sessions"]]
        for _, item in items:
            for frame in item["frames"]:
                official = not item["name"].startswith("raw/") or frame["dir"] == "response"
                key = (frame.get("hex"), frame["dir"])
                if official and frame.get("fields") and key not in seen:
                    seen.add(key)
                    yield pytest.param(frame["dir"], frame, id=f"{file}-{item['name']}-{frame['dir']}-{len(seen)}")
        for item in data["encoder"]:
            frame = item | {"protocol": "v2" if file == "wire_v2" else "v3"}
            yield pytest.param("response", frame, id=f"{file}-encoder-{item['name']}")


def raw_exchanges() -> Iterator[Any]:
    for file, data in FILES.items():
        for item in data["exchanges"]:
            if item["name"].startswith("raw/"):
                yield pytest.param(item, id=f"{file}-{item['name']}")


@pytest.mark.parametrize(("direction", "frame"), list(official_frames()))
def test_official_frames_round_trip(direction: str, frame: Fields) -> None:
    wire = bytes.fromhex(frame["hex"])
    (body,) = Framer().feed(wire)
    if direction == "request":
        dialect = Dialect.V2 if frame["protocol"] == "v2" else Dialect.V3
        decoded = DialectDetector().decode(body)
        if isinstance(decoded, RefusedFrame):
            fields = frame["fields"]
            assert fields.get("entry_id") == -1 and fields["opcode"] == "BATCH_READ_ENTRY", "only this one is refused"
            return
        header, request = decoded
        assert header.dialect is dialect
        assert fields_of_request(header, request) == frame["fields"]
        assert encode_request(request, dialect, header.txn_id) == wire
    else:
        header, reply = decode_reply(body, Dialect.V2 if frame["protocol"] == "v2" else Dialect.V3)
        assert fields_of_reply(header, reply) == frame["fields"]
        assert encode_reply(header, reply) == wire


@pytest.mark.parametrize("item", list(raw_exchanges()))
def test_odd_frames_meet_the_recorded_reaction(item: Fields) -> None:
    """What the bookie did, as far as the codec decides it: close, answer with an error, or go on."""
    detector, framer = DialectDetector(), Framer()
    frames = item["frames"]
    answers = [bytes.fromhex(f["hex"]) for f in frames if f["dir"] == "response" and f.get("hex")]
    silence = [f for f in frames if f["dir"] == "response" and str(f.get("event", "")).startswith("no answer")]
    closed = not answers and not silence
    answered = 0
    try:
        for frame in frames:
            if frame["dir"] == "request" and frame.get("hex"):
                for body in framer.feed(bytes.fromhex(frame["hex"])):
                    outcome = detector.decode(body)
                    if item["name"] in STRICTER:
                        assert isinstance(outcome, RefusedFrame) and outcome.status is STRICTER[item["name"]]
                        return
                    check_against(outcome, answers[answered])
                    answered += 1
    except MalformedFrameError:
        assert closed or answered == len(answers), "the recorded bookie answered"
        return
    assert not closed and answered == len(answers)


def check_against(outcome: tuple[RequestHeader, Request] | RefusedFrame, answer: bytes) -> None:
    if isinstance(outcome, RefusedFrame):
        assert outcome.frame == answer
        return
    header, request = outcome
    _, reply = decode_reply(answer[4:], header.dialect)
    assert encode_reply(header, reply) == answer, "our reply to this request would have the same envelope"
    if reply.status is not Status.OK and not isinstance(reply, BareReply):
        assert encode_reply(header, failure(request, reply.status)) == answer


def test_a_length_at_the_limit_is_awaited_and_one_more_is_not() -> None:
    assert Framer().feed((FRAME_MAX - 4).to_bytes(4, "big")) == []
    with pytest.raises(MalformedFrameError):
        Framer().feed((FRAME_MAX - 3).to_bytes(4, "big"))


# -- our values as the recorder's fields -----------------------------------------------------------------


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def without_none(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def fields_of_request(header: RequestHeader, request: Request) -> Fields:
    if header.dialect is Dialect.V2:
        return v2_request(header, request)
    fields: Fields = {"header": v3_header(header)}
    match request:
        case AddEntry(ledger_id, entry_id, key, entry):
            fields["addRequest"] = without_none(
                ledgerId=ledger_id,
                entryId=entry_id,
                masterKey=key.hex(),
                body=entry.hex(),
                writeFlags=1 if request.deferred_sync else None,
                flag="RECOVERY_ADD" if request.recovery else None,
            )
        case ReadEntry():
            flag = "FENCE_LEDGER" if request.fence else "ENTRY_PIGGYBACK" if request.piggyback else None
            fields["readRequest"] = without_none(
                ledgerId=request.ledger_id,
                entryId=request.entry_id,
                masterKey=hexed(request.master_key),
                previousLAC=request.previous_lac,
                timeOut=request.timeout_ms,
                flag=flag,
            )
        case WriteLac(ledger_id, lac, key, body):
            fields["writeLacRequest"] = {
                "ledgerId": ledger_id,
                "lac": lac,
                "masterKey": key.hex(),
                "body": body.hex(),
            }
        case ReadLac(ledger_id):
            fields["readLacRequest"] = {"ledgerId": ledger_id}
        case ForceLedger(ledger_id):
            fields["forceLedgerRequest"] = {"ledgerId": ledger_id}
        case GetBookieInfo(requested):
            fields["getBookieInfoRequest"] = {"requested": requested}
        case ListEntries(ledger_id):
            fields["getListOfEntriesOfLedgerRequest"] = {"ledgerId": ledger_id}
        case Auth(plugin, payload):
            fields["authRequest"] = {"authPluginName": plugin, "payload": payload.hex()}
        case StartTls():
            fields["startTLSRequest"] = {}
        case BatchRead():
            raise AssertionError("v3 has none")
    return fields


def v3_header(header: RequestHeader) -> Fields:
    operation = OperationType.Name(header.op.value)
    fields = {"version": header.version, "operation": operation, "txnId": header.txn_id}
    return fields | ({"priority": header.priority} if header.priority else {})


def v2_request(header: RequestHeader, request: Request) -> Fields:
    fields: Fields = {"version": header.version, "opcode": V2_OPCODES[header.op], "flags": 0}
    priority = 4 if getattr(request, "priority", 0) else 0
    match request:
        case AddEntry(_, _, key, entry):
            fields |= {"flags": priority | 2 * request.recovery, "master_key": key.hex(), "entry": entry.hex()}
        case ReadEntry(ledger_id, entry_id, read_key, fence):
            fields |= {"flags": priority | fence, "ledger_id": ledger_id, "entry_id": entry_id}
            fields["master_key"] = hexed(read_key)
        case BatchRead(ledger_id, entry_id, request_id, count_max, size_max, read_key, fence):
            fields |= {"flags": priority | fence, "ledger_id": ledger_id, "entry_id": entry_id}
            fields |= {"request_id": request_id, "max_count": count_max, "max_size": size_max}
            fields["master_key"] = hexed(read_key)
        case Auth(plugin, payload):
            fields["authMessage"] = {"authPluginName": plugin, "payload": payload.hex()}
    return fields


def fields_of_reply(header: RequestHeader, reply: Reply) -> Fields:
    if header.dialect is Dialect.V2:
        return v2_reply(header, reply)
    name = StatusCode.Name(TO_V3[reply.status])
    fields: Fields = {"header": v3_header(header), "status": name}
    match reply:
        case AddReply(_, ledger_id, entry_id):
            fields["addResponse"] = {"status": name, "ledgerId": ledger_id, "entryId": entry_id}
        case ReadReply(_, ledger_id, entry_id, entry, max_lac, stamp):
            fields["readResponse"] = without_none(
                status=name,
                ledgerId=ledger_id,
                entryId=entry_id,
                body=hexed(entry),
                maxLAC=max_lac,
                lacUpdateTimestamp=stamp,
            )
        case LacReply(_, ledger_id, lac_body, last_entry):
            fields["readLacResponse"] = without_none(
                status=name, ledgerId=ledger_id, lacBody=hexed(lac_body), lastEntryBody=hexed(last_entry)
            )
        case WriteLacReply(_, ledger_id):
            fields["writeLacResponse"] = {"status": name, "ledgerId": ledger_id}
        case ForceReply(_, ledger_id):
            fields["forceLedgerResponse"] = {"status": name, "ledgerId": ledger_id}
        case InfoReply(_, total, free):
            fields["getBookieInfoResponse"] = without_none(status=name, totalDiskCapacity=total, freeDiskSpace=free)
        case ListReply(_, ledger_id, availability):
            fields["getListOfEntriesOfLedgerResponse"] = without_none(
                status=name, ledgerId=ledger_id, availabilityOfEntriesOfLedger=hexed(availability)
            )
        case AuthReply(_, plugin, payload):
            fields["authResponse"] = {"authPluginName": plugin, "payload": payload.hex()}
        case StartTlsReply():
            fields["startTLSResponse"] = {}
        case _:
            assert isinstance(reply, BareReply)
    return fields


def v2_reply(header: RequestHeader, reply: Reply) -> Fields:
    fields: Fields = {"version": header.version, "opcode": V2_OPCODES[header.op], "flags": 0}
    if isinstance(reply, AuthReply):
        return fields | {"authMessage": {"authPluginName": reply.plugin, "payload": reply.payload.hex()}}
    assert isinstance(reply, AddReply | ReadReply | BatchReply)
    rc = TO_V2[reply.status]
    fields |= {"rc": rc, "rc_name": RC_NAMES[rc], "ledger_id": reply.ledger_id, "entry_id": reply.entry_id}
    if isinstance(reply, ReadReply):
        fields["entry"] = (reply.entry or b"").hex()
    if isinstance(reply, BatchReply):
        entries, at = [], 0
        while at < len(reply.body):
            size = int.from_bytes(reply.body[at : at + 4], "big")
            entries.append(reply.body[at + 4 : at + 4 + size].hex())
            at += 4 + size
        fields |= {"request_id": reply.request_id, "entries": entries}
    return fields


RC_NAMES = {
    0: "EOK",
    1: "ENOLEDGER",
    2: "ENOENTRY",
    100: "EBADREQ",
    101: "EIO",
    102: "EUA",
    103: "EBADVERSION",
    104: "EFENCED",
    105: "EREADONLY",
    106: "ETOOMANYREQUESTS",
    107: "EUNKNOWNLEDGERSTATE",
}
