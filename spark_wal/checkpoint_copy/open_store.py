"""Stores that hold checkpoints, by address.

file:///DIR, or a path                a directory on this machine
webhdfs://, swebhdfs:// HOST:PORT/P   a gateway of ours, or HDFS by WebHDFS
s3a://, s3://, gs://, hdfs://, ...    a store of pyarrow (needs the package pyarrow)

An address is what Spark takes as ``checkpointLocation``, and Hadoop decodes nothing in one: a % is a %.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from bookkeeper.errors import ConfigError
from bookkeeper.install import how_to_install
from spark_wal.checkpoint_copy.stores import CheckpointStore
from spark_wal.spark_access import GatewayAccess


def open_store(uri: str, access: GatewayAccess, *, may_be_root: bool = False) -> CheckpointStore:
    """Open the store at an address; ``access`` is for gateways, of which the whole tree is meant if it may be.

    Raises:
        ConfigError: the address cannot be used, or a package is missing.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        from spark_wal.checkpoint_copy.local_store import LocalStore

        return LocalStore(uri)
    if parts.scheme in ("webhdfs", "swebhdfs"):
        from spark_wal.checkpoint_copy.gateway_store import GatewayStore

        return GatewayStore(uri, access, may_be_root=may_be_root)
    try:
        from spark_wal.checkpoint_copy.arrow_store import ArrowStore
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{parts.scheme}:// needs the Python package {missing.name}, which is not installed: "
            f"{how_to_install('copy')}"
        ) from None
    return ArrowStore(uri)
