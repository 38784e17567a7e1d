"""The custom metadata of a stream's ledgers: they find a ledger that no node names."""

from __future__ import annotations

from typing import Final

COMPONENT_TAGS: Final = {"application": b"bookkeeper-py", "component": b"segments"}
"""What all ledgers of all streams carry."""


def stream_tags(stream_id: str) -> dict[str, bytes]:
    """What all ledgers of one stream carry."""
    return COMPONENT_TAGS | {"stream": stream_id.encode()}


def ledger_tags(stream_id: str, epoch: int) -> dict[str, bytes]:
    """The custom metadata of a ledger that the owner of ``epoch`` makes."""
    return stream_tags(stream_id) | {"epoch": b"%d" % epoch}
