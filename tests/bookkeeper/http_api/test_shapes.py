"""Apache's JSON."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.http_api.shapes import entry_text, ledger_document, ledger_text, readable, settings_document
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, ""),
        (999, ""),
        (1000, "(1KB)"),
        (1999, "(1.999KB)"),
        (999_999, "(999.999KB)"),
        (60_201_189_376, "(60.201GB)"),
        (1_500_000, "(1.5MB)"),
        (5_000_000_000_000_000, "(5000TB)"),
    ],
)
def test_sizes_are_cut_as_javas_decimal_format_cuts_them(size: int, text: str) -> None:
    assert readable(size) == text


def test_bytes_that_are_no_ascii_become_one_mark_each() -> None:
    assert entry_text(b"a\xc3\xa9z") == "a\ufffd\ufffdz"


def _metadata(password: bytes) -> LedgerMetadata:
    bookies = [BookieId("b1"), BookieId("b2")]
    return LedgerMetadata.create(
        QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=2), bookies, password=password, custom={"k": b"\x00\xff"}
    )


def test_a_ledger_that_is_open_ends_at_minus_one_and_shows_no_password() -> None:
    found = ledger_document(LedgerId(7), _metadata(b"hunter2"))
    assert (found["ledgerId"], found["state"], found["lastEntryId"], found["closed"]) == (7, "OPEN", -1, False)
    assert found["customMetadata"] == {"k": "AP8="} and found["password"] == ""
    assert found["allEnsembles"] == {"0": [{"id": "b1"}, {"id": "b2"}]}
    assert ledger_text(_metadata(b"hunter2")) == ledger_text(_metadata(b"")), "nothing of the password is left"


def test_settings_that_could_hold_a_secret_are_left_out() -> None:
    options = {
        "metadata_uri": "sqlite:///m",
        "directory": "/b",
        "tls": {"cert": "/c.pem", "key": "/planted.pem"},
        "auth": {"provider": "none"},
        "audit": {"to": "log"},
        "read_only": True,
        "ledger_dirs": ["/d1", "/d2"],
        "http_api": {"listen": "127.0.0.1:0", "token_file": "/planted", "actions": ["compaction", "read-only"]},
    }
    found = settings_document(config_from(options))
    assert (found["read_only"], found["ledger_dirs"], found["audit.to"]) == ("true", "/d1,/d2", "log")
    assert found["http_api.actions"] == "compaction,read-only" and "storage.journal_file_bytes" in found
    assert "planted" not in str(found) and "c.pem" not in str(found)
    assert all(isinstance(value, str) for value in found.values())
