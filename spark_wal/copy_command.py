"""``bk checkpoint``: commands for checkpoints; ``copy`` is here, the others are in ``checkpoint_verbs``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.amounts import counted
from spark_wal.checkpoint_options import access_options
from spark_wal.checkpoint_verbs import VERBS

if TYPE_CHECKING:
    from spark_wal.spark_access import GatewayAccess


@click.group(cls=CommandGroup)
def checkpoint() -> None:
    """Look at checkpoints of streaming queries, compare and check them, go back, copy them."""


for verb in VERBS:
    checkpoint.add_command(verb)


@checkpoint.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--resume", is_flag=True, help="Finish a copy that was interrupted.")
@click.option(
    "--keep-addresses", is_flag=True, help="Copy files that name the old place; the old place must then stay."
)
@access_options
def copy(
    source: str,
    target: str,
    resume: bool,
    keep_addresses: bool,
    access: GatewayAccess,
) -> None:
    """Copy a stopped query's checkpoint. The query then continues from TO as it would from FROM.

    \b
    FROM and TO are directories:
      /DIR, file:///DIR                      on this machine
      webhdfs://HOST:PORT/P, swebhdfs://...  at a gateway, or at HDFS by WebHDFS
      s3a://BUCKET/P, hdfs://HOST/P, ...     stores of pyarrow (S3: credentials from the environment, options in
                                             the address: ?region=...&endpoint_override=...)

    TO must be empty. Every byte is read back. Until the copy is complete, TO's metadata is a note that Spark cannot
    read, so no query can start from half a checkpoint. FROM is only read. If it changes meanwhile, because the query
    still runs, the copy ends unfinished. Afterwards start the query at one of the two places only.

    The output of file sinks is not copied: their _spark_metadata holds full addresses, so a moved sink begins anew.
    """
    from spark_wal.checkpoint_copy.copier import CheckpointCopier
    from spark_wal.checkpoint_copy.open_store import open_store

    with closing(open_store(source, access)) as old, closing(open_store(target, access)) as new:
        copier = CheckpointCopier(old, new, resume=resume, keep_addresses=keep_addresses)
        copier.prepare()
        with _bar(copier.size) as progress:
            copied = copier.run(progress)
        summary = f"{counted(copied.files, 'file')}, {copied.size} bytes, sha256 {copied.digest[:16]}"
        before = f", {copied.already} of them by an earlier copy" if copied.already else ""
        click.echo(f"copied and verified: {summary}{before}")
        click.echo(f"checkpointLocation={new.uri}")


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar of the copied and verified bytes, on standard error when a person looks at it."""
    if not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("copying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("copy", total=total)
        yield lambda size: bar.advance(task, size)
