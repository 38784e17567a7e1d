"""The client inside a bookie."""

from __future__ import annotations

from dataclasses import replace

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.net.tls import ServerTls, TlsConfig
from bookkeeper.replication.repairs.bookie_client import _own_tls
from bookkeeper.storage.base.config import StorageConfig

STORAGE = StorageConfig(journal_dir="d/journal", ledger_dir="d/ledgers")


def test_other_bookies_are_spoken_to_with_the_own_certificate_where_an_authority_is_named() -> None:
    def of(tls: ServerTls) -> TlsConfig | None:
        return _own_tls(BookieConfig(directory="d", metadata_uri="sqlite:d/metadata.db", storage=STORAGE, tls=tls))

    own = ServerTls(cert="a.pem", key="a.key", client_ca="ca.pem")
    assert of(own) == TlsConfig(ca="ca.pem", cert="a.pem", key="a.key")
    assert of(replace(own, client_ca=None)) is None, "nobody vouches for the others"
    assert of(replace(own, mode="off")) is None
