"""The bytes of ledger metadata.

    "BookieMetadataFormatVersion" TAB <version> LF <body>

Version 3 (what new ledgers get): varint length and a binary LedgerMetadataFormat. Version 2: the same message as
text. Version 1: lines. All three are read; a ledger keeps the version it has. **M7**: decode(encode(x)) = x, and
fields that we do not know, of the message, of a segment or of a custom entry, come back as they were (version 3;
version 2 refuses them, as Java does).
"""

from __future__ import annotations

import re
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.digest import DigestType
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import metadata_pb2 as pb

_HEADER: Final = re.compile(rb"BookieMetadataFormatVersion\t(\d{1,10})\n")
_IN_RECOVERY: Final = -102
"""Last entry of version 1 while a recovery runs."""


def encode(metadata: LedgerMetadata) -> bytes:
    """The bytes of a ledger's metadata, in their own format version.

    Raises:
        MetadataFormatError: versions 2 and 3 have no place for a ledger without digest type and password.
    """
    header = f"BookieMetadataFormatVersion\t{metadata.format_version}\n".encode()
    if metadata.format_version == 1:
        return header + _encode_lines(metadata)
    message = _to_message(metadata)
    try:
        if metadata.format_version == 2:
            return header + text_format.MessageToString(message, as_utf8=False).encode()
        body = message.SerializeToString(deterministic=True) + metadata.unknown
    except EncodeError as error:
        raise MetadataFormatError(f"{metadata}: {error}") from error
    return header + _varint(len(body)) + body


def decode(data: bytes) -> LedgerMetadata:
    """The reverse of encode.

    Raises:
        MetadataFormatError: the bytes are no ledger metadata, or describe an impossible ledger (M4).
    """
    header = _HEADER.match(data)
    if header is None:
        raise MetadataFormatError("ledger metadata lack a required field")
    body = data[header.end() :]
    try:
        match int(header[1]):
            case 1:
                return _decode_lines(body)
            case 2:
                text = pb.LedgerMetadataFormat()
                text_format.Parse(body, text)
                return _from_message(text, 2)
            case 3:
                size, start = _read_varint(body)
                if len(body) < start + size:
                    raise MetadataFormatError(f"ledger metadata should have {size} bytes, but have {len(body) - start}")
                message = pb.LedgerMetadataFormat()
                message.ParseFromString(body[start : start + size])
                return _from_message(message, 3)
            case version:
                raise MetadataFormatError(
                    f"ledger metadata have format version {version}, which this program does not know"
                )
    except (DecodeError, text_format.ParseError, ValueError, IndexError) as error:
        raise MetadataFormatError(f"ledger metadata cannot be read: {error}") from error


# -- versions 2 and 3 ---------------------------------------------------------------------------------------


def _to_message(metadata: LedgerMetadata) -> pb.LedgerMetadataFormat:
    if metadata.digest_type is None or metadata.password is None:
        raise MetadataFormatError(f"format version {metadata.format_version} needs a digest type and a password")
    message = pb.LedgerMetadataFormat(
        quorumSize=metadata.spec.write_quorum,
        ensembleSize=metadata.spec.ensemble_size,
        length=metadata.length,
        lastEntryId=metadata.last_entry,
        state=pb.LedgerMetadataFormat.State.Name(metadata.state),
        digestType=pb.LedgerMetadataFormat.DigestType.Name(metadata.digest_type),
        password=metadata.password,
        ackQuorumSize=metadata.spec.ack_quorum,
    )
    for fragment in metadata.fragments:
        segment = message.segment.add(ensembleMember=fragment.ensemble, firstEntryId=fragment.first_entry)
        if fragment.unknown:
            segment.MergeFromString(fragment.unknown)
    if metadata.ctime_ms is not None:
        message.ctime = metadata.ctime_ms
    for key, value in metadata.custom.items():
        entry = message.customMetadata.add(key=key, value=value)
        if rest := metadata.unknown_of_custom.get(key):
            entry.MergeFromString(rest)
    if metadata.format_version == 3:
        message.cToken = metadata.creator_token
    return message


def _text(value: str | bytes) -> str:
    """A name in a message; protobuf hands out bytes that are no UTF-8 as they are. Raises: MetadataFormatError."""
    if not isinstance(value, str):
        raise MetadataFormatError(f"ledger metadata have a name that is no text: {value[:100]!r}")
    return value


def _from_message(message: pb.LedgerMetadataFormat, version: int) -> LedgerMetadata:
    if not message.IsInitialized():
        raise MetadataFormatError("ledger metadata lack a required field")
    unknown: Any = UnknownFieldSet(message)
    if any(field.field_number == pb.LedgerMetadataFormat.DIGESTTYPE_FIELD_NUMBER for field in unknown):
        raise MetadataFormatError("ledger metadata have a digest type that this program does not know")
    state = LedgerState(message.state)
    if state is LedgerState.CLOSED and not message.HasField("lastEntryId"):
        raise MetadataFormatError("ledger metadata say closed, but lack the last entry")
    password, digest_type = None, None
    if message.HasField("password"):
        password = message.password
        digest_type = DigestType(message.digestType) if message.HasField("digestType") else DigestType.CRC32
    return LedgerMetadata(
        spec=QuorumSpec(
            ensemble_size=message.ensembleSize,
            write_quorum=message.quorumSize,
            ack_quorum=message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize,
        ),
        state=state,
        fragments=tuple(
            Fragment(
                EntryId(segment.firstEntryId),
                tuple(BookieId(intern(_text(member))) for member in segment.ensembleMember),
                _unknown(segment),
            )
            for segment in message.segment
        ),
        length=message.length if state is LedgerState.CLOSED else 0,
        last_entry=EntryId(message.lastEntryId) if state is LedgerState.CLOSED else NO_ENTRY,
        digest_type=digest_type,
        password=password,
        ctime_ms=message.ctime if message.HasField("ctime") else None,
        custom=MappingProxyType({_text(entry.key): entry.value for entry in message.customMetadata}),
        creator_token=message.cToken,
        format_version=version,
        unknown=_unknown(message),
        unknown_of_custom=MappingProxyType(
            {entry.key: rest for entry in message.customMetadata if (rest := _unknown(entry))}
        ),
    )


def _unknown(message: Message) -> bytes:
    """The bytes of a message's unknown fields, without those of messages inside it."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for field in rest.DESCRIPTOR.fields:
        rest.ClearField(field.name)
    return rest.SerializePartialToString()


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: bytes) -> tuple[int, int]:
    """The number at the beginning of the data, and where it ends."""
    number = 0
    for index in range(5):
        number |= (data[index] & 0x7F) << 7 * index
        if data[index] < 0x80:
            return number, index + 1
    raise MetadataFormatError("a length of more than five bytes")


# -- version 1 ----------------------------------------------------------------------------------------------


def _encode_lines(metadata: LedgerMetadata) -> bytes:
    lines = [f"{metadata.spec.write_quorum}\n{metadata.spec.ensemble_size}\n{metadata.length}\n"]
    for fragment in metadata.fragments:
        lines.append("\t".join((str(fragment.first_entry), *fragment.ensemble)) + "\n")
    match metadata.state:
        case LedgerState.CLOSED:
            lines.append(f"{metadata.last_entry}\tCLOSED")
        case LedgerState.IN_RECOVERY:
            lines.append(f"{_IN_RECOVERY}\tCLOSED")
    return "".join(lines).encode()


def _decode_lines(body: bytes) -> LedgerMetadata:
    quorum, ensemble_size, length, *rest = body.decode().rstrip("\n").split("\n")
    fragments: list[Fragment] = []
    last: int | None = None
    for line in rest:
        first, *members = line.split("\t")
        if members == ["CLOSED"]:
            last = int(first)
            break
        fragments.append(Fragment(EntryId(int(first)), tuple(BookieId(member) for member in members)))
    state = LedgerState.CLOSED
    if last is None:
        state = LedgerState.OPEN
    elif last == _IN_RECOVERY:
        state = LedgerState.IN_RECOVERY
    return LedgerMetadata(
        spec=QuorumSpec(ensemble_size=int(ensemble_size), write_quorum=int(quorum), ack_quorum=int(quorum)),
        state=state,
        fragments=tuple(fragments),
        length=int(length) if state is LedgerState.CLOSED else 0,
        last_entry=EntryId(last) if state is LedgerState.CLOSED and last is not None else NO_ENTRY,
        digest_type=None,
        password=None,
        format_version=1,
    )
