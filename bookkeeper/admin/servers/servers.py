"""``bk zookeeper`` and ``bk standalone``: servers for one machine. (``bk bookie`` is the bookie's own verb.)"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from bookkeeper.bookie.http_api_config import http_api_options
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.errors import BookKeeperError, MetadataUnavailableError
from bookkeeper.ids import Address
from bookkeeper.option_types import WholeNumber
from bookkeeper.program_log import VARIABLE, log_form, log_option
from bookkeeper.settings import default_of

_FILE: Final = click.Path(dir_okay=False)
_API_PORT: Final = 8080
"""That of Apache's servers."""
_CONSOLE_PORT: Final = Address.parse(default_of(ConsoleConfig, "listen")).port


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="The directory for its data. They are kept.",
)
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    metavar="PORT",
    default=2181,
    show_default=True,
    help="The port; 0 takes a free one.",
)
def zookeeper(directory: Path, port: int) -> None:
    """Run ZooKeeper for development, from PySpark's jars: a single server on 127.0.0.1.

    For production run an ensemble of three servers: https://zookeeper.apache.org
    """
    from bookkeeper.launchers.zookeeper import ZooKeeperServer

    server = ZooKeeperServer(directory, port=port)
    try:
        server.start()
    except MetadataUnavailableError:
        raise click.ClickException(
            f"ZooKeeper did not begin to serve at {server.address}; its output is in {server.log}"
        ) from None
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # before the line below invites anyone to stop it
    click.echo(f"ZooKeeper serves at {server.address}; a cluster in it: {server.uri}")
    while server.pid is not None and signal.sigwait(awaited) == signal.SIGCHLD:
        pass
    ended = server.pid is None
    server.stop()
    if ended:
        raise click.ClickException(f"ZooKeeper has ended by itself; its output is in {server.log}")


@click.command()
@click.option(
    "--bookies", type=WholeNumber(1, 9), metavar="N", default=3, show_default=True, help="The number of bookies."
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory for everything.  [default: a new temporary directory]",
)
@click.option(
    "--webhdfs-port",
    type=WholeNumber(0, 65535),
    metavar="PORT",
    default=9870,
    show_default=True,
    help="The gateway's port; 0: no gateway.",
)
@click.option(
    "--console",
    "console_port",
    is_flag=False,
    flag_value=_CONSOLE_PORT,
    type=WholeNumber(1, 65535),
    metavar="[PORT]",
    help=f"Serve the console, too: pages for a browser on this machine, by default at port {_CONSOLE_PORT}.",
)
@click.option(
    "--http-api",
    "http_api_port",
    is_flag=False,
    flag_value=_API_PORT,
    type=WholeNumber(1, 65535),
    metavar="[PORT]",
    help="Let each bookie serve Apache's HTTP administration API on this machine, the first at this port and the "
    f"others behind it, by default from {_API_PORT} on; it needs --http-token-file.",
)
@click.option(
    "--http-token-file",
    type=_FILE,
    help="With --http-api: the file of tokens that `bk gateway token` writes; all but health and metrics needs one.",
)
@click.option(
    "--http-actions",
    metavar="ACTION,...",
    help="With --http-api: which routes that change something are on, such as delete-ledger; all: every one.  "
    "[default: none]",
)
@click.option(
    "--autorecovery/--no-autorecovery",
    default=True,
    show_default=True,
    help="Repair under-replicated ledgers, in a process of its own.",
)
@click.option(
    "--tls-cert",
    type=_FILE,
    help="PEM: the bookies' certificate, for 127.0.0.1. The bookies then refuse connections without TLS.",
)
@click.option("--tls-key", type=_FILE, help="PEM: its private key.  [default: it is in --tls-cert]")
@click.option("--tls-ca", type=_FILE, help="PEM: the authority that signed --tls-cert; the gateway trusts it.")
@click.option(
    "--tls-client-ca",
    type=_FILE,
    help="PEM: the authority that signs clients' certificates; the gateway shows --tls-cert.",
)
@log_option
def standalone(
    bookies: int,
    directory: Path | None,
    webhdfs_port: int,
    console_port: int | None,
    http_api_port: int | None,
    http_token_file: str | None,
    http_actions: str | None,
    autorecovery: bool,
    **tls: str | None,
) -> None:
    """Run everything on this machine: bookies, metadata in SQLite, the WebHDFS gateway. Ctrl-C stops it.

    Each is a process of its own. A process that ends by itself is started again after 1 s at first, and 30 s at most.
    The next start on the same directory uses the same data. Status 0 means that all were up when it was told to stop.
    """
    from bookkeeper.admin.cli import COMMAND_GROUP
    from bookkeeper.admin.servers.standalone import Standalone
    from bookkeeper.admin.servers.standalone_plan import StandalonePlan

    os.environ[VARIABLE] = log_form()  # its processes write theirs so
    home = (directory or Path(tempfile.mkdtemp(prefix="bk-"))).resolve()
    given = click.get_current_context().get_parameter_source("webhdfs_port")
    plan = StandalonePlan(
        home,
        bookies=bookies,
        webhdfs_port=webhdfs_port or None,
        command_group=COMMAND_GROUP,
        autorecovery=autorecovery,
        gateway_wanted=given is not ParameterSource.DEFAULT,
        console_port=console_port,
        http_api_port=http_api_port,
        http_api=http_api_options(None, _absolute(http_token_file), http_actions),
        tls={name.removeprefix("tls_"): str(Path(file).resolve()) for name, file in tls.items() if file is not None},
    )
    try:
        status = Standalone(plan).run()
    except BookKeeperError:
        if directory is None:
            home.rmdir()
        raise
    raise SystemExit(status)


def _absolute(file: str | None) -> str | None:
    """The same file for a process in another directory."""
    return None if file is None else str(Path(file).resolve())
