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
    NotEnoughBookiesError,
)
from segments.error_translation import stream_error, worded
from segments.errors import (
    Applied,
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
        (DataMissingError("gone"), StreamCorruptError, Applied.NO),
        (ConfigError("bad"), StreamConfigError, Applied.NO),
        (EntryTooLargeError("large"), RecordTooLargeError, Applied.NO),
        (ClientClosedError("closed"), StreamClosedError, Applied.UNKNOWN),
        (MetadataUnavailableError("away"), StreamMetadataError, Applied.UNKNOWN),
        (NotEnoughBookiesError("2 of 3"), StreamUnavailableError, Applied.NO),
        (AddTimeoutError("late"), StreamUnavailableError, Applied.UNKNOWN),
    ],
)
def test_kind_and_outcome_are_kept(error: BookKeeperError, kind: type[StreamError], outcome: Applied) -> None:
    found = stream_error(error, "appending", "s")
    assert (type(found), found.outcome, found.stream) == (kind, outcome, "s")
    assert str(found).startswith("appending: ")
    with pytest.raises(kind) as raised, worded("appending", "s"):
        raise error
    assert raised.value.__cause__ is error
