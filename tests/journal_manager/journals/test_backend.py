"""The contract's own data, and its roles as types."""

from __future__ import annotations

import pytest

from journal_manager import JournalReader, JournalWriter, NamespaceInfo, NamespaceMismatchError

CHANGES = {"start_segment", "finalize_segment", "discard_segment", "purge"}


def test_who_reads_has_no_method_that_changes_anything() -> None:
    assert not CHANGES & set(dir(JournalReader))
    assert set(dir(JournalWriter)) >= CHANGES | {name for name in dir(JournalReader) if not name.startswith("_")}


def test_ids_of_a_namespace_must_be_the_same_and_times_may_differ() -> None:
    mine = NamespaceInfo(1, "c", "p", layout_version=1, ctime=5)
    mine.ensure_same(NamespaceInfo(1, "c", "p", layout_version=2, ctime=6))
    with pytest.raises(NamespaceMismatchError, match="cluster_id is x, and c is expected"):
        mine.ensure_same(NamespaceInfo(1, "x", "p"))
