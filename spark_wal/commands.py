"""``bk gateway webhdfs``: a WebHDFS gateway as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

import click

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import Address
from bookkeeper.real import run, system_seams
from journal_manager import JournalError

LISTEN = "127.0.0.1:9870"


class AddressType(click.ParamType[Address]):
    """HOST:PORT."""

    name = "host:port"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return Address.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class QuotaType(click.ParamType[tuple[str, int | None]]):
    """/PATH=BYTES, or /PATH=none."""

    name = "/path=bytes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int | None]:
        path, equals, size = str(value).rpartition("=")
        if not equals or not path.startswith("/") or not (size == "none" or size.isdecimal()):
            self.fail(f"expected /PATH=BYTES or /PATH=none, got {value!r}", param, ctx)
        return path, None if size == "none" else int(size)


@click.group()
def gateway() -> None:
    """Serve the cluster in other protocols."""


@gateway.command()
@click.option(
    "--metadata",
    envvar="BK_METADATA",
    required=True,
    metavar="URI",
    help="The cluster (zk+hierarchical://..., sqlite:///...), or file:///DIR for a namespace without one.",
)
@click.option("--listen", type=AddressType(), default=LISTEN, show_default=True, help="Where to accept requests.")
@click.option("--advertise", metavar="HOST:PORT", help="The address that clients use, if it is another one.")
@click.option("--namespace", default="default", show_default=True, help="The tree of files to serve.")
@click.option(
    "--quota", "quotas", type=QuotaType(), multiple=True, help="How many bytes may lie below a path. May be repeated."
)
def webhdfs(
    metadata: str, listen: Address, advertise: str | None, namespace: str, quotas: tuple[tuple[str, int | None], ...]
) -> None:
    """A WebHDFS gateway: Spark keeps its streaming checkpoints here (webhdfs://HOST:PORT/...).

    A second gateway on the same namespace takes it over; the first one stands by.
    """
    from spark_wal.webhdfs.gateway import GatewayConfig
    from spark_wal.webhdfs.serving import ServingConfig, WebHdfsService

    config = ServingConfig(
        uri=metadata,
        namespace=namespace,
        listen=listen,
        advertise=advertise,
        gateway=GatewayConfig(quotas=dict(quotas)),
    )

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with WebHdfsService(config, system_seams()) as service:
            click.echo(f"webhdfs://{advertise or service.address}/ serves namespace {namespace}")
            await stop.wait()

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run(serve())
    except (BookKeeperError, JournalError, OSError) as error:
        raise click.ClickException(str(error)) from error
