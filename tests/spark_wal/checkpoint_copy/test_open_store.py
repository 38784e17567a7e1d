from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest

import spark_wal
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


@pytest.mark.parametrize("name", ["a%20b", "a b", "100%"])
def test_an_address_is_spelled_as_for_spark_which_decodes_nothing(tmp_path: Path, name: str) -> None:
    """The cause: addresses were decoded here, and Hadoop's are not: a copy to ``webhdfs://h/a%20b`` lay in ``a b``, and
    a query that was then started on ``webhdfs://h/a%20b`` began anew."""
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as wal:
        there = open_store(wal.location(name), GatewayAccess())
        there.write("offsets/0", lambda: [b"x"])
        there.close()
        with urlopen(f"{wal.url}/webhdfs/v1/?op=LISTSTATUS") as reply:
            (listed,) = json.load(reply)["FileStatuses"]["FileStatus"]
        assert listed["pathSuffix"] == name
    here = open_store(f"file://{tmp_path}/{name}", GatewayAccess())
    here.write("offsets/0", lambda: [b"x"])
    here.close()
    assert (tmp_path / name / "offsets" / "0").read_bytes() == b"x"
