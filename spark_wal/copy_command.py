"""``bk checkpoint``: commands for the checkpoint of a stopped query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real import read_secret

FILE: Final = click.Path(dir_okay=False)


@click.group(cls=CommandGroup)
def checkpoint() -> None:
    """Copy checkpoints of stopped streaming queries."""


@checkpoint.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--resume", is_flag=True, help="Finish a copy that was interrupted.")
@click.option(
    "--keep-addresses", is_flag=True, help="Copy files that name the old place; the old place must then stay."
)
@click.option(
    "--ca",
    type=FILE,
    help="PEM: the authority that signed the gateway's certificate (swebhdfs).  [default: the public authorities]",
)
@click.option("--cert", type=FILE, help="PEM: the client's certificate, for a gateway that asks for one.")
@click.option("--key", type=FILE, help="PEM: the client's private key.  [default: it is in --cert]")
@click.option("--token-file", type=FILE, help="A private file that holds the token for a gateway.")
def copy(
    source: str,
    target: str,
    resume: bool,
    keep_addresses: bool,
    ca: str | None,
    cert: str | None,
    key: str | None,
    token_file: str | None,
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
    from spark_wal.checkpoint_copy.copier import CheckpointCopier, CopyRefusedError
    from spark_wal.checkpoint_copy.open_store import open_store
    from spark_wal.checkpoint_copy.stores import CheckpointStoreError
    from spark_wal.spark_access import GatewayAccess

    try:
        token = None if token_file is None else read_secret(token_file)
        access = GatewayAccess(ca=ca, certificate=cert, key=key, token=token)
        with closing(open_store(source, access)) as old, closing(open_store(target, access)) as new:
            copier = CheckpointCopier(old, new, resume=resume, keep_addresses=keep_addresses)
            copier.prepare()
            with _bar(copier.size) as progress:
                copied = copier.run(progress)
            summary = f"{copied.files} files, {copied.size} bytes, sha256 {copied.digest[:16]}"
            before = f", {copied.already} of them by an earlier copy" if copied.already else ""
            click.echo(f"copied and verified: {summary}{before}")
            click.echo(f"checkpointLocation={new.uri}")
    except (ConfigError, CopyRefusedError, CheckpointStoreError, OSError) as error:
        raise click.ClickException(in_words(error)) from error


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
