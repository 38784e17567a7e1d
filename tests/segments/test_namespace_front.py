"""What namespaces share, near and behind gateways."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import StreamClosedError, StreamConfigError, StreamNameError
from segments.namespace import StreamNamespace
from segments.namespace_front import NamespaceFront
from segments.remote import RemoteNamespace, connect
from tests.segments.gateway.clusters import served


def test_what_both_sides_do_in_the_same_way_is_written_once() -> None:
    shared = ("create", "open", "exists", "list", "infos", "watch", "rename", "delete", "import_stream", "verify")
    for name in (*shared, "close", "ensure_open"):
        assert getattr(StreamNamespace, name) is getattr(RemoteNamespace, name) is getattr(NamespaceFront, name)


async def test_behind_gateways_too_names_are_checked_and_a_closed_one_refuses(tmp_path: Path) -> None:
    """Cause: calls on a closed namespace went on to channels that were closed."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        with pytest.raises(StreamNameError):
            await namespace.delete("a b")
        with pytest.raises(StreamConfigError, match="gateways do not finish deletions"):
            await namespace.finish_deletions()
        await namespace.delete("missing", missing_ok=True)
        await namespace.close()
        for call in (namespace.create("a"), namespace.exists("a"), namespace.rename("a", "b"), namespace.verify()):
            with pytest.raises(StreamClosedError, match="this namespace is closed"):
                await call
        with pytest.raises(StreamClosedError, match="this namespace is closed"):
            _ = [name async for name in namespace.list()]
