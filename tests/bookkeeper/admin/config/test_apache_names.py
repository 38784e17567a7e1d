"""The settings of Apache's that mean nothing here."""

from __future__ import annotations

from bookkeeper.admin.config.apache_names import NOTED, REASONS
from bookkeeper.admin.config.apache_settings import RULES


def test_each_setting_has_one_reason_and_no_translation() -> None:
    names = [name for group in REASONS.values() for name in group.split()]
    assert len(names) == len(set(names)) == len(NOTED)
    assert not set(NOTED) & set(RULES), "what is translated means something"


def test_all_settings_of_the_original_have_their_place() -> None:
    """342 names of ``bk_server.conf`` and of ``ServerConfiguration`` with its bases, and three more of its storage."""
    assert len(NOTED) + len(RULES) == 345
    for name in (
        "journalSyncData",
        "numAddWorkerThreads",
        "dbStorage_rocksDB_blockSize",
        "auditorReplicasCheckInterval",
    ):
        assert name in NOTED


def test_a_reason_is_part_of_a_sentence() -> None:
    for reason in REASONS:
        assert reason == reason.strip() and not reason.endswith(".") and len(reason.split()) > 3, reason
