"""Which rights each call needs, by the fields of its requests that name streams (X12). Data, and who reads it. Pure.

Every field of every request has its decision here: it names a stream, and these rights on it are needed; or it asks for
more than the call does without it; or it names nothing outside the stream that the request names. A test goes over all
fields of the protocol, and the gateway does not serve a call that is missing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.access import Right
from bookkeeper.gateways.permissions import ANY_RIGHT, Needs, all_of, one_of

READ: Final = one_of(Right.READ)
APPEND: Final = one_of(Right.APPEND)
CREATE: Final = one_of(Right.CREATE)
REMOVE: Final = one_of(Right.DELETE, Right.ADMINISTER)
"""Whatever lets records or a stream's life end, now or by itself."""
MOVE: Final = all_of(Right.READ, Right.DELETE)
"""The name goes, and what is under it can be read under another one."""
HOLD: Final = one_of(Right.HOLD, Right.ADMINISTER)
"""What is held costs room. A hold of somebody else needs ``OVERRULE``, which the call itself asks for."""
OVERRULE: Final = one_of(Right.ADMINISTER)
"""To do what others have secured themselves against."""
REPAIR: Final = one_of(Right.RECOVER, Right.ADMINISTER)
"""A repair takes the stream from its writer."""


@dataclass(frozen=True, slots=True)
class RequestRights:
    """The decisions about one call's requests."""

    names: Mapping[str, Needs] = field(default_factory=dict)
    """Fields that name a stream (``open.stream``: of a message in a field), and what is needed on it. An empty name
    means all streams."""
    flags: Mapping[str, Needs] = field(default_factory=dict)
    """Fields that ask for more when they are set, and what is needed for that on every stream that is named."""
    values: tuple[str, ...] = ()
    """Fields that name nothing outside of that stream."""
    may_be_unnamed: bool = False
    """A request need not name the stream: an earlier one has, or the call itself finds the name and asks then."""


VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "Settings": ("values",),
    "Position": ("segment", "entry", "slot"),
    "Seek": (
        *("position", "txid", "time_ms", "seq_no", "ago_ms", "earliest", "latest", "event_time_ms"),
        "cursor",  # one of the same stream
    ),
    "Empty": (),
    "Header": ("name", "value"),
    "Record": ("value", "key", "headers", "txid", "event_time_ms"),
    "ProducerRef": ("name", "epoch", "sequence"),
    "Credits": ("records", "bytes"),
    "Hold": ("name", "start", "stop", "until_ms", "note", "created_ms", "by"),
    "CursorClaim": ("epoch", "nonce", "ranges_max"),
    "AckedRanges": ("first", "end", "segment", "entry", "slot"),
    "BatchKey": ("app", "query", "batch", "start", "run"),
    # a ledger is published only if its own metadata name this stream and this staging: StreamPublisher looks
    "StagedRows": ("staging", "stream_id", "records", "ledger", "entries"),
    "SegmentInfo": (
        *("number", "ledger_id", "completed", "start_seq_no", "records", "bytes", "created_ms", "completed_ms"),
        *("first_txid", "last_txid", "last", "last_entry", "epoch", "first_append_ms", "last_append_ms"),
        *("min_event_ms", "max_event_ms", "footer_entry"),
    ),
}
"""Messages inside requests: fields that name nothing outside of the request's stream. A resume token is compared with
the stream that the request names."""

_APPENDED: Final = ("records", "values", "producer", "expected_tail", "crc32c", "monotonic")


def _on(needs: Needs, *values: str, **flags: Needs) -> RequestRights:
    """The usual request: it names one stream."""
    return RequestRights({"stream": needs}, flags, values)


RIGHTS: Final[Mapping[str, RequestRights]] = {
    "Streams.Create": _on(CREATE, "settings", "exist_ok"),
    "Streams.Get": _on(ANY_RIGHT),
    "Streams.List": RequestRights(values=("prefix",)),  # tells of what the caller has any right on
    "Streams.Watch": RequestRights(values=("prefix",)),
    "Streams.UpdateConfig": _on(REMOVE, "settings"),
    "Streams.Rename": RequestRights({"stream": MOVE, "new_name": CREATE}),
    "Streams.Delete": _on(one_of(Right.DELETE), "missing_ok", "stream_id", force=OVERRULE),
    "Streams.Seal": _on(REMOVE),
    "Streams.GetOwner": _on(ANY_RIGHT),
    "Streams.Show": _on(READ),
    "Streams.Check": _on(READ, "no_scan", "no_orphans", "older_than_s", repair=REPAIR),
    "Streams.Export": _on(READ, "start", "stop"),
    "Streams.Import": RequestRights(
        {"open.stream": CREATE}, values=("open.settings", "open.dry_run", "chunk"), may_be_unnamed=True
    ),
    "Append.Append": _on(APPEND, *_APPENDED),
    "Append.AppendStream": RequestRights({"stream": APPEND}, values=_APPENDED, may_be_unnamed=True),
    "Append.OpenProducer": _on(APPEND, "producer", "monotonic", "epoch"),
    "Append.GetOutcome": _on(APPEND, "producer", "sequence"),
    "Append.Publish": _on(APPEND, "key", "rows"),
    "Read.Read": _on(READ, "start", "stop", "max_records", "on_gap", "undone_by", "entries"),
    "Read.Tail": RequestRights(
        {"open.stream": READ},
        values=(
            *("open.start", "open.resume_token", "open.on_gap", "open.progress_ms", "open.undone_by", "open.entries"),
            *("credits", "seek"),
        ),
        may_be_unnamed=True,
    ),
    "Read.Find": _on(READ, "seek"),
    "Read.Count": _on(READ, "start", "stop"),
    "Read.GetSplits": _on(READ, "start", "stop", "target"),
    "Read.GetLag": _on(READ, "place", "last_append_ms"),
    "Read.GetActivity": _on(READ, "place"),
    "Segments.ListSegments": _on(READ),
    "Segments.Roll": _on(APPEND),
    "Segments.Truncate": _on(REMOVE, "before", "dry_run", "up_to_holds"),
    "Segments.ExplainRetention": _on(READ),
    "Segments.ApplyRetention": _on(REMOVE, "dry_run"),
    "Segments.PutHold": _on(HOLD, "name", "start", "stop", "until_ms", "note"),
    "Segments.DeleteHold": _on(HOLD, "name", "only"),
    "Segments.ListHolds": _on(READ),
    "Cursors.Create": _on(READ, "name", "start", "individual"),
    "Cursors.Get": _on(READ, "name"),
    "Cursors.List": _on(READ),
    "Cursors.Claim": _on(READ, "name", "start", "must_exist", "owner"),
    "Cursors.Release": _on(READ, "name", "claim"),
    "Cursors.Advance": _on(READ, "name", "to", "expected", "claim", "seq_no"),
    "Cursors.Ack": _on(READ, "name", "positions", "claim", "ranges"),
    "Cursors.Skip": _on(READ, "name", "count", "count_acked", "claim"),
    "Cursors.Reset": _on(READ, "name", "seek", "claim", "owner", "force"),
    "Cursors.Restore": _on(READ, "name", "version", "claim", "owner", "force"),
    "Cursors.SetProperties": _on(READ, "name", "set", "remove", "claim", "force"),
    "Cursors.GetBacklog": _on(READ, "name", "precise"),
    "Cursors.History": _on(READ, "name", "limit"),
    "Cursors.Delete": _on(READ, "name"),
    "Operations.Get": RequestRights(values=("id",)),
}
"""By service and name."""


MAKES: Final = frozenset(
    ("Streams.Create", "Segments.PutHold", "Cursors.Create", "Cursors.Claim", "Append.OpenProducer")
)
"""Calls that make something in the metadata, or an entry of the stream. Each counts as one entry by its caller's own
rates, as changes of files do: else one tenant has the store busy for all."""


def needs_of(rights: RequestRights, request: Any) -> Iterator[tuple[str, Needs]]:
    """The streams that a request names, each with what is needed on it."""
    more = [needs for flag, needs in rights.flags.items() if getattr(request, flag)]
    for path, needs in rights.names.items():
        stream = _value(request, path)
        if not stream and rights.may_be_unnamed:
            continue
        yield stream, needs
        for each in more:
            yield stream, each


def _value(request: Any, path: str) -> str:
    found = request
    for name in path.split("."):
        found = getattr(found, name)  # a message that is not set has empty fields
    return str(found)
