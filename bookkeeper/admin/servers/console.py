"""``bk console``: pages that show a cluster in a browser."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import click

from bookkeeper.admin.shared.answers import on_cluster
from bookkeeper.admin.shared.options import metadata_option
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.program_log import begin_log, log_option
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


@click.command()
@metadata_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=default_of(ConsoleConfig, "listen"),
    show_default=True,
    help="Where pages are served. Without --listen-tls-cert a loopback address.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="The file of tokens that `bk gateway token` writes. With it every page requires a token, which a browser asks "
    "for as a password; without it whoever reaches the address sees the pages.",
)
@click.option(
    "--actions",
    metavar="ACTION,...",
    help="What pages may change: repair, drain, read-only, purge, or all; it needs --token-file.  [default: nothing]",
)
@click.option(
    "--listen-tls-cert",
    metavar="FILE",
    help="PEM: the console's certificate and chain; then it speaks TLS, and other hosts may reach it.",
)
@click.option("--listen-tls-key", metavar="FILE", help="PEM: its private key.  [default: in --listen-tls-cert]")
@click.option("--audit", metavar="FILE|log", help="Write its audit log there: admissions, refusals and changes.")
@log_option
def console(
    metadata: str,
    listen: str,
    token_file: str | None,
    actions: str | None,
    listen_tls_cert: str | None,
    listen_tls_key: str | None,
    audit: str | None,
) -> None:
    """Show the cluster in a browser: bookies, ledgers, repairs, and the panels of other packages. Ctrl-C stops it.

    \b
    Example:
      bk console --metadata zk://zk1:2181/ledgers
      (then open http://127.0.0.1:9880/)

    Pages only show, unless --actions names what they may change; whoever changes something types a token.
    """
    import logging

    from bookkeeper.audit import AuditConfig
    from bookkeeper.console.process import serve
    from bookkeeper.console.templates import environment
    from bookkeeper.real import NotifySocket, names_secrets, no_core_dumps

    environment()  # a library that is missing is told before anything is begun
    begin_log(logging.WARNING)
    config = ConsoleConfig(
        listen=listen,
        token_file=token_file,
        actions=tuple(word.strip() for word in actions.split(",")) if actions else (),
        tls_cert=listen_tls_cert,
        tls_key=listen_tls_key,
    )
    if names_secrets(os.environ) or config.token_file or config.tls_cert:
        no_core_dumps()
    supervisor = NotifySocket.of_this_process()
    name = f"{platform.node()}:{os.getpid()}"

    @on_cluster()
    async def work(bk: BookKeeper) -> None:
        await serve(bk, name, metadata, config, click.echo, AuditConfig(to=audit), supervisor)

    work(metadata=metadata)
