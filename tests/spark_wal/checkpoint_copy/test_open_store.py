from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret
from spark_wal.checkpoint_copy.open_store import open_store
from spark_wal.checkpoint_copy.stores import CheckpointStore
from spark_wal.spark_access import GatewayAccess


@pytest.mark.parametrize(
    "open_it",
    [
        lambda: open_store("file://host/a", GatewayAccess()),
        lambda: open_store("webhdfs://host:1", GatewayAccess()),
        lambda: open_store("webhdfs://host:1/a", GatewayAccess(token=Secret("x"))),
        lambda: open_store("swebhdfs://host:1/a", GatewayAccess(ca="/none")),
        lambda: open_store("gopher://host/a", GatewayAccess()),
    ],
)
def test_other_addresses_are_refused(open_it: Callable[[], CheckpointStore]) -> None:
    with pytest.raises(ConfigError):
        open_it()
