"""What a check finds, in words."""

from __future__ import annotations

from bookkeeper.storage.scrub.damage import CheckedFile, DamagedPlace, FileKind


def test_a_place_and_a_whole_file_in_words() -> None:
    assert str(DamagedPlace(FileKind.LOG, 1, "/d/1.log", 4096, 8, "it rots")) == "/d/1.log at byte 4096: it rots"
    assert str(DamagedPlace(FileKind.LOG, 1, "/d/1.log", 0, 0, "it is missing")) == "/d/1.log: it is missing"


def test_every_kind_has_a_word_and_its_turn() -> None:
    assert [kind.word for kind in sorted(FileKind)] == [
        "manifest",
        "journal file",
        "index segment",
        "entry log",
        "state file",
    ]
    assert CheckedFile(FileKind.LOG, 1, 5) != CheckedFile(FileKind.LOG, 2, 5)
