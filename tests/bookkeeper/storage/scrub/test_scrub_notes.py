"""What a scrub remembers."""

from __future__ import annotations

import pytest

from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.storage.base.durable_file import stamp
from bookkeeper.storage.scrub.scrub_notes import ScrubNotes

NOTES = ScrubNotes(12.5, (3, 7), False, [1, 5], [5], ["a place"])


@pytest.mark.parametrize("notes", [NOTES, ScrubNotes()])
def test_notes_come_back(notes: ScrubNotes) -> None:
    assert ScrubNotes.decode(notes.encode(), "notes") == notes


def test_suspects_are_added() -> None:
    assert NOTES.with_suspects([9, 1]).suspects == [1, 5, 9] and NOTES.suspects == [1, 5]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"behind":3}', b'{"behind":[],"x":1}', b'{"behind":null,"x":1}'])
def test_what_is_no_note_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptionError):
        ScrubNotes.decode(stamp(b"BKSC", 1, body), "notes")


def test_damage_and_later_versions_are_refused() -> None:
    data = NOTES.encode()
    for at in range(len(data)):
        with pytest.raises(CorruptionError):
            ScrubNotes.decode(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "notes")
    with pytest.raises(UnsupportedFormatError):
        ScrubNotes.decode(stamp(b"BKSC", 2, b"{}"), "notes")
