from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.sync import BookKeeper
from examples.apache_servers import QUICK_ADDS, ApacheBookie
from tests.interop.apache_shell import shell

pytestmark = pytest.mark.interop


def test_a_bookie_serves_is_killed_and_serves_again_on_its_data(java_cluster: str, tmp_path: Path) -> None:
    with (
        ApacheBookie(tmp_path / "b1", java_cluster, settings=QUICK_ADDS) as bookie,
        BookKeeper.connect(java_cluster) as client,
    ):
        assert bookie.bookie_id == f"127.0.0.1:{bookie.address.port}"
        assert f"BookieID:{bookie.bookie_id}," in shell("listbookies", "-rw", uri=java_cluster)
        with client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
            ledger.append(b"kept")
        bookie.kill()
        assert not bookie.running
        assert not bookie.serves()
        bookie.start()
        with client.open_ledger(ledger.id) as reader:
            assert reader.read_entry(0) == b"kept"
    assert not bookie.running
    assert "journalFlushWhenQueueEmpty=true" in bookie.configuration.read_text()


def test_one_that_cannot_start_says_why(java_cluster: str, tmp_path: Path) -> None:
    bookie = ApacheBookie(tmp_path / "b2", java_cluster, settings={"journalDirectories": "/dev/null/x"})
    with pytest.raises(BookieUnavailableError, match="ended before it was serving"):
        bookie.start()
