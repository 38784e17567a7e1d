"""The contract of journal backends is shipped as ``journal_manager.testing``; our own tests find it here."""

from __future__ import annotations

from journal_manager.testing import (
    NAMESPACE,
    Journal,
    JournalBackendContract,
    batch,
    body,
    closing,
    ends,
    txids,
    write_segment,
)

__all__ = [
    "NAMESPACE",
    "Journal",
    "JournalBackendContract",
    "batch",
    "body",
    "closing",
    "ends",
    "txids",
    "write_segment",
]
