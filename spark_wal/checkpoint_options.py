"""What the verbs of ``bk checkpoint`` share: the options that reach a gateway, and the checkpoint that is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.real import read_secret

if TYPE_CHECKING:
    from spark_wal.checkpoint_copy.stores import CheckpointStore
    from spark_wal.checkpoints.checkpoint import Checkpoint
    from spark_wal.spark_access import GatewayAccess

FILE: Final = click.Path(dir_okay=False)


def access_options(verb: Callable[..., None]) -> Callable[..., None]:
    """``--ca``, ``--cert``, ``--key``, ``--token-file``: the verb gets ``access``, and its failures are sentences."""
    options = (
        click.option(
            "--ca",
            type=FILE,
            help="PEM: the authority that signed the gateway's certificate (swebhdfs).  "
            "[default: the public authorities]",
        ),
        click.option("--cert", type=FILE, help="PEM: the client's certificate, for a gateway that asks for one."),
        click.option("--key", type=FILE, help="PEM: the client's private key.  [default: it is in --cert]"),
        click.option("--token-file", type=FILE, help="A private file that holds the token for a gateway."),
    )

    @wraps(verb)
    def command(*, ca: str | None, cert: str | None, key: str | None, token_file: str | None, **others: Any) -> None:
        from spark_wal.checkpoint_copy.copier import CopyRefusedError
        from spark_wal.checkpoint_copy.stores import CheckpointStoreError
        from spark_wal.spark_access import GatewayAccess

        try:
            token = None if token_file is None else read_secret(token_file)
            verb(access=GatewayAccess(ca=ca, certificate=cert, key=key, token=token), **others)
        except (ConfigError, CopyRefusedError, CheckpointStoreError, OSError) as error:
            raise click.ClickException(in_words(error)) from error

    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def opened_store(location: str, access: GatewayAccess, *, may_be_root: bool = False) -> Iterator[CheckpointStore]:
    from spark_wal.checkpoint_copy.open_store import open_store

    with closing(open_store(location, access, may_be_root=may_be_root)) as store:
        yield store


def required(checkpoint: Checkpoint) -> Checkpoint:
    if not checkpoint.offsets and not checkpoint.commits and checkpoint.query_id is None:
        raise click.ClickException(
            f"{checkpoint.uri} holds no checkpoint: a query's checkpoint has a file named metadata and a directory "
            "named offsets"
        )
    return checkpoint


def in_ranges(numbers: tuple[int, ...]) -> str:
    """``batch 3``, or ``batches 1 to 4, 6``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in found]
    return ("batch " if len(numbers) == 1 else "batches ") + ", ".join(parts)
