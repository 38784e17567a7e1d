"""Spark Structured Streaming on replicated ledgers: its write-ahead log and checkpoint outlive a machine.

Spark writes its offset log, commit log and state itself. It needs a file system that keeps the promises of a
checkpoint. :mod:`spark_wal.webhdfs` is one: a WebHDFS gateway whose namespace is a journal. So an unmodified PySpark
can use ``checkpointLocation=webhdfs://host:port/name``.

``checkpoint_service`` starts (or finds) a gateway for a notebook or a script::

    with spark_wal.checkpoint_service("embedded:///data/bk?bookies=3") as wal:
        spark = SparkSession.builder.config(map=wal.spark_conf()).getOrCreate()
        query = flights.writeStream.option("checkpointLocation", wal.location("flights")).start()

commands, copy_command, checkpoint_verbs, rollback_verb, checkpoint_options
                                            ``bk gateway``, ``bk checkpoint``
service                                     ``checkpoint_service``
webhdfs, checkpoints, checkpoint_copy       the gateway; what a checkpoint holds; copies of one
data_source, foreach_batch                  streams, ledgers and journals in Spark
gateway_location, spark_access, hadoop_tokens, key_stores
                                            where gateways are; how a session reaches one by TLS, with a token

It may be imported before pytest looks at it (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookkeeper.real import read_secret
    from bookkeeper.secret import Secret
    from spark_wal.foreach_batch import batch_writer
    from spark_wal.service import CheckpointService, checkpoint_service, spark_conf
    from spark_wal.spark_access import GatewayAccess

__all__ = [
    "CheckpointService",
    "GatewayAccess",
    "Secret",
    "batch_writer",
    "checkpoint_service",
    "read_secret",
    "spark_conf",
]


def __getattr__(name: str) -> object:
    """Import on first use, so that importing this package is quick and needs no HTTP library."""
    if name == "batch_writer":
        from spark_wal.foreach_batch import batch_writer

        return batch_writer
    if name in __all__:
        from bookkeeper import real, secret
        from spark_wal import service, spark_access

        rooms = {"GatewayAccess": spark_access, "Secret": secret, "read_secret": real}
        return getattr(rooms.get(name, service), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
