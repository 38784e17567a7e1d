"""BookKeeper's errors in the words of streams."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    BookKeeperError,
    ClientClosedError,
    ConfigError,
    DataMissingError,
    EntryTooLargeError,
    MetadataUnavailableError,
    NoLedgerKeyError,
    NotEnoughBookiesError,
)
from bookkeeper.outcome import Outcome
from segments.error_translation import stream_error, worded
from segments.errors import (
    RecordTooLargeError,
    StreamClosedError,
    StreamConfigError,
    StreamCorruptError,
    StreamError,
    StreamMetadataError,
    StreamUnavailableError,
)


@pytest.mark.parametrize(
    ("error", "kind", "outcome"),
    [
        (DataMissingError("gone"), StreamCorruptError, Outcome.REJECTED),
        (ConfigError("bad"), StreamConfigError, Outcome.REJECTED),
        (NoLedgerKeyError("no key"), StreamConfigError, Outcome.REJECTED),
        (EntryTooLargeError("large"), RecordTooLargeError, Outcome.REJECTED),
        (ClientClosedError("closed"), StreamClosedError, Outcome.UNKNOWN),
        (MetadataUnavailableError("away"), StreamMetadataError, Outcome.UNKNOWN),
        (NotEnoughBookiesError("2 of 3"), StreamUnavailableError, Outcome.REJECTED),
        (AddTimeoutError("late"), StreamUnavailableError, Outcome.UNKNOWN),
    ],
)
def test_kind_and_outcome_are_kept(error: BookKeeperError, kind: type[StreamError], outcome: Outcome) -> None:
    found = stream_error(error, "appending", "s")
    assert (type(found), found.outcome, found.stream) == (kind, outcome, "s")
    assert str(found).startswith("appending: ")
    with pytest.raises(kind) as raised, worded("appending", "s"):
        raise error
    assert raised.value.__cause__ is error
