"""All three stores against the contract."""

from __future__ import annotations

from tests.contracts.metadata_store import MetadataStoreContract


class TestEveryStore(MetadataStoreContract):
    """``store`` and ``service`` come from conftest.py, once for each implementation."""
