"""The options that verbs of all gateways share: who may ask, and how many may connect."""

from __future__ import annotations

import logging
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from bookkeeper.audit import AuditConfig
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import ConfigError
from bookkeeper.ids import Address
from bookkeeper.net.tls import RELOAD_S
from bookkeeper.option_types import Number, WholeNumber
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper.gateways.access_control import AccessConfig
    from bookkeeper.gateways.server_tls import ServerTlsFiles

F = TypeVar("F", bound=Callable[..., Any])

FILE: Final = click.Path(dir_okay=False)

DESCRIPTORS: Final = 512
"""Descriptors besides those of connections: for journal, bookies and the metadata store."""


def limit(name: str, config: type, field: str, help_text: str) -> Callable[[F], F]:
    """An option for a positive number, whose default is that of a field of ``config``."""
    default = default_of(config, field)
    kind = WholeNumber(min=1) if isinstance(default, int) else Number(min=0, min_open=True)
    return click.option(name, type=kind, metavar=_unit(name), default=default, show_default=True, help=help_text)


def _unit(name: str) -> str:
    """What stands for the number in the help of ``--slow-client-s`` (SECONDS), ``--file-bytes-max`` (BYTES)."""
    words = name.split("-")
    return "SECONDS" if words[-1] == "s" else "BYTES" if "bytes" in words else "N"


class AddressType(click.ParamType[Address]):
    """HOST:PORT."""

    name = "host:port"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return Address.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def metadata_session(command: F) -> F:
    """Add the option ``--metadata-session``."""
    return click.option(
        "--metadata-session",
        "metadata_session_s",
        type=Number(),
        envvar="BK_METADATA_SESSION",
        metavar="SECONDS",
        default=default_of(ClientConfig, "metadata_session_ms") / 1000,
        show_default=True,
        help="After so long without contact the metadata store ends the gateway's session. [env: BK_METADATA_SESSION]",
    )(command)


def access_options(command: F) -> F:
    """Add the options of :func:`access_config`."""
    options = [
        click.option("--tls-cert", type=FILE, help="PEM: the gateway's certificate and its chain. Switches TLS on."),
        click.option("--tls-key", type=FILE, help="PEM: the gateway's private key, mode 0600."),
        click.option(
            "--client-ca", type=FILE, help="PEM: the authority that signs clients' certificates; clients must show one."
        ),
        click.option(
            "--client-certificates",
            type=click.Choice(["required", "optional"]),
            default="required",
            show_default=True,
            help="With optional a client may show a token instead.",
        ),
        click.option(
            "--allow",
            multiple=True,
            metavar="NAME[=/PATH][:read]",
            help="Only certificates of this NAME, or with this role (role:NAME), and only for the files below /PATH "
            "and the streams below PATH; with :read only to read. May be repeated.  [default: every certificate]",
        ),
        click.option(
            "--tls-crl", type=FILE, help="PEM: lists of revoked certificates, if they are not in --client-ca."
        ),
        click.option(
            "--token-file",
            type=FILE,
            help="The file of tokens, made by bk gateway token; every request then needs a token.",
        ),
        click.option(
            "--reload-s",
            type=Number(min=0.1),
            metavar="SECONDS",
            default=RELOAD_S,
            show_default=True,
            help="Seconds between two checks for changed certificates and tokens.",
        ),
        click.option(
            "--audit",
            metavar="FILE|log",
            help="Note who did what, or was refused, in this file (an absolute path), or in the log.",
        ),
        click.option("--insecure", is_flag=True, help="Listen beyond loopback without encryption or authentication."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def access_config(
    *,
    tls_cert: str | None,
    tls_key: str | None,
    client_ca: str | None,
    client_certificates: str,
    allow: tuple[str, ...],
    tls_crl: str | None,
    token_file: str | None,
    reload_s: float,
    audit: str | None,
    insecure: bool,
) -> AccessConfig:
    """Who may ask, with these options. Raises: ConfigError."""
    from bookkeeper.gateways.access_control import AccessConfig  # it loads much, and bk loads what it runs
    from bookkeeper.gateways.allowed_names import AllowedName

    return AccessConfig(
        tls=_tls_files(tls_cert, tls_key, client_ca, client_certificates, tls_crl),
        token_file=token_file,
        allow=tuple(map(AllowedName.parse, allow)),
        insecure=insecure,
        reload_s=reload_s,
        audit=AuditConfig(to=audit),
    )


def raise_descriptors(connections: int) -> None:
    """Allow this process as many descriptors as its connections may need; if the system refuses, warn of the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            text = (
                "the system allows this process only %d descriptors, too few for --connections-max %d: "
                "raise the limit (ulimit -n), or lower --connections-max"
            )
            logging.getLogger(__name__).warning(text, soft, connections)


def _tls_files(
    cert: str | None, key: str | None, client_ca: str | None, client_certificates: str, crl: str | None
) -> ServerTlsFiles | None:
    from bookkeeper.gateways.server_tls import ServerTlsFiles

    if cert is None and key is None:
        given = "--client-ca" if client_ca is not None else "--tls-crl" if crl is not None else None
        if given is not None:
            raise ConfigError(f"{given} needs TLS: give --tls-cert and --tls-key")
        return None
    return ServerTlsFiles(
        certificate=cert or "",
        key=key or "",
        client_ca=client_ca,
        crl=crl,
        client_certificates=client_certificates,
    )
