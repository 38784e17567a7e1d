"""``bk gateway``: run gateways, print the settings that Spark needs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.extras import missing
from bookkeeper.admin.shared.options import given_cluster
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.command_options import (
    FILE,
    AddressType,
    access_config,
    access_options,
    limit,
    metadata_session,
)
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.gateway_process import run_gateway
from bookkeeper.ids import Address
from bookkeeper.option_types import Number, WholeNumber
from bookkeeper.program_log import log_option
from bookkeeper.real import read_secret, system_seams
from journal_manager import JournalError
from spark_wal.webhdfs.config import DEFAULT_LISTEN, GROWING, KEEP_S, GatewayConfig, OwnerConfig, UploadLimits

if TYPE_CHECKING:
    from spark_wal.webhdfs.service import ServingConfig

OTHERS: Final[Mapping[str, str]] = {
    "grpc": "segments.gateway.command:grpc",
    "token": "bookkeeper.gateways.token_commands:token",
    "tokens": "bookkeeper.gateways.token_commands:tokens",
    "revoke-token": "bookkeeper.gateways.token_commands:revoke_token",
    "new-signing-key": "bookkeeper.gateways.token_commands:new_signing_key",
}
"""Verbs of other packages, and where their commands are."""
SENTENCES: Final[Mapping[str, str]] = {
    "grpc": "Run a gateway of streams: clients of any language append and read by gRPC (grpc://HOST:PORT).",
    "token": "Make a token for NAME, print it once, and add its hash to the file.",
    "tokens": "List the tokens of a file: their ids, owners, limits and ends.",
    "revoke-token": "Take tokens out of the file: by their ids, or by their owner's name.",
    "new-signing-key": "Put a new signing key before the others: it signs access tokens from now on.",
}
"""The first sentences of their help."""


class GatewayVerbs(CommandGroup):
    """The group of the verbs below, and of :data:`OTHERS`, which are imported when they are needed."""

    def sentence(self, name: str) -> str | None:
        return SENTENCES.get(name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *OTHERS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (place := OTHERS.get(cmd_name)) is None:
            return super().get_command(ctx, cmd_name)
        try:
            command = _found_at(place)
        except ModuleNotFoundError as error:
            return _without(cmd_name, error)
        assert isinstance(command, click.Command)
        return command


def _found_at(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _without(name: str, cause: ModuleNotFoundError) -> click.Command:
    """A command whose libraries are missing: it says so when it is used."""
    text = f"bk gateway {name} {missing(cause)}"

    def refuse() -> None:
        raise click.ClickException(text)

    settings: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, help=text, short_help=text, context_settings=settings)


class QuotaType(click.ParamType[tuple[str, int | None]]):
    """/PATH=NUMBER, or /PATH=none."""

    def __init__(self, unit: str) -> None:
        self._unit = unit.upper()
        self.name = f"/path={unit}"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int | None]:
        path, equals, size = str(value).rpartition("=")
        if not equals or not path.startswith("/") or not (size == "none" or size.isdecimal()):
            self.fail(f"expected /PATH={self._unit} or /PATH=none, got {value!r}", param, ctx)
        return path, None if size == "none" else int(size)


@click.group(cls=GatewayVerbs)
def gateway() -> None:
    """Serve files and streams of the cluster in other protocols."""


@gateway.command()
@click.option(
    "--metadata",
    "-m",
    envvar="BK_METADATA",
    callback=given_cluster,
    metavar="URI",
    help="The cluster (zk+hierarchical://..., sqlite:///...), or file:///DIR for a namespace without a cluster. "
    "[env: BK_METADATA]",
)
@click.option(
    "--listen",
    type=AddressType(),
    default=str(DEFAULT_LISTEN),
    show_default=True,
    help="The address at which requests are accepted.",
)
@click.option("--advertise", metavar="HOST:PORT", help="The address that clients use, if it is another one.")
@click.option("--namespace", metavar="NAME", default="default", show_default=True, help="The tree of files to serve.")
@click.option(
    "--quota",
    "quotas",
    type=QuotaType("bytes"),
    multiple=True,
    help="How many bytes may lie below a path. May be repeated.",
)
@click.option(
    "--names-quota",
    "names_quotas",
    type=QuotaType("names"),
    multiple=True,
    help="How many files and directories may be at and below a path. May be repeated.",
)
@click.option(
    "--memory-max",
    type=WholeNumber(min=1),
    metavar="BYTES",
    help="The memory that all files and directories may take, about.  [default: a third of the machine's, or of "
    "the container's]",
)
@access_options
@limit("--connections-max", ConnectionLimits, "connections_max", "Connections at a time; one more is closed.")
@limit(
    "--connections-per-host-max",
    ConnectionLimits,
    "connections_per_host_max",
    "Connections at a time from one address.",
)
@limit("--handshakes-max", ConnectionLimits, "handshakes_max", "TLS handshakes at a time.")
@limit(
    "--slow-client-s",
    ConnectionLimits,
    "slow_s",
    "Seconds for a request's head, for a chunk of its body, and for the client to read a reply.",
)
@limit("--upload-idle-s", ConnectionLimits, "upload_idle_s", "Seconds that may pass between two chunks of an upload.")
@limit("--file-bytes-max", UploadLimits, "file_bytes_max", "The size of the largest file, in bytes.")
@click.option(
    "--temporary-keep-s",
    type=Number(min=0),
    metavar="SECONDS",
    default=KEEP_S,
    show_default=True,
    help="Seconds after which an untouched temporary file of Spark's is removed; 0: never.",
)
@click.option(
    "--growing",
    "growing",
    multiple=True,
    metavar="PATTERN",
    default=GROWING,
    show_default=True,
    help="Paths of files that are read while they are written: what was received is durable each second, also if the "
    "upload is cut. May be repeated, and replaces the default; none: there are no such files.",
)
@click.option(
    "--upload-log",
    type=FILE,
    help="A file that records the outcome of each upload; it survives a kill -9.",
)
@limit("--lease-s", GatewayConfig, "lease_s", "Seconds for which the owner may answer after its last renewal.")
@metadata_session
@log_option
@click.option("--take-over", is_flag=True, help="Take the namespace from the gateway that owns it, if one does.")
def webhdfs(**options: Any) -> None:
    """Run a WebHDFS gateway: Spark keeps its streaming checkpoints there (webhdfs://HOST:PORT/...).

    A second gateway on the same namespace stands by, and takes over when the first one ends. With --take-over it
    takes over at once, and the first one stands by.

    With --tls-cert and --tls-key the address is swebhdfs://HOST:PORT/..., and the gateway may listen beyond this
    machine if it authenticates clients: by --client-ca, by --token-file, or by both. SIGHUP makes it check for
    changed files at once. The environment (BK_TLS_CA, BK_TLS_CERT, BK_TLS_KEY) says how it reaches bookies by TLS.
    """
    from spark_wal.webhdfs.service import WebHdfsService

    run_gateway(
        lambda: _serving_config(**options),
        lambda config: WebHdfsService(config, system_seams()),
        lambda config, service: f"{config.scheme}://{config.advertise or service.address}/ {service.description}",
        failures=(JournalError,),
    )


def _serving_config(
    *,
    metadata: str,
    listen: Address,
    advertise: str | None,
    namespace: str,
    quotas: tuple[tuple[str, int | None], ...],
    names_quotas: tuple[tuple[str, int | None], ...],
    memory_max: int | None,
    connections_max: int,
    connections_per_host_max: int,
    handshakes_max: int,
    slow_client_s: float,
    upload_idle_s: float,
    file_bytes_max: int,
    temporary_keep_s: float,
    growing: tuple[str, ...],
    upload_log: str | None,
    lease_s: float,
    metadata_session_s: float,
    take_over: bool,
    **access: Any,
) -> ServingConfig:
    """The settings of a gateway with these options. Raises: ConfigError."""
    from spark_wal.webhdfs.service import ServingConfig

    return ServingConfig(
        uri=metadata,
        namespace=namespace,
        listen=listen,
        advertise=advertise,
        access=access_config(**access),
        limits=ConnectionLimits(
            connections_max=connections_max,
            connections_per_host_max=min(connections_per_host_max, connections_max),
            handshakes_max=handshakes_max,
            slow_s=slow_client_s,
            upload_idle_s=max(upload_idle_s, slow_client_s),
        ),
        gateway=GatewayConfig(
            owner=OwnerConfig(
                limits=UploadLimits(file_bytes_max=file_bytes_max),
                temporary_keep_s=temporary_keep_s,
                memory_max=memory_max,
                growing=() if growing == ("none",) else growing,
            ),
            quotas=dict(quotas),
            names_quotas=dict(names_quotas),
            lease_s=lease_s,
            metadata_session_s=metadata_session_s,
        ),
        upload_log=upload_log,
        take_over=take_over,
    )


@gateway.command("spark-conf")
@click.argument("urls", metavar="https://HOST:PORT...", nargs=-1, required=True)
@click.option(
    "--name",
    metavar="NAME",
    help="The name of several gateways in locations (webhdfs://NAME/...).  [default: ckpt]",
)
@click.option(
    "--dir",
    "directory",
    required=True,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The directory for the files that Spark needs.",
)
@click.option(
    "--ca",
    type=FILE,
    help="PEM: the authority that signed the gateway's certificate.  [default: the public authorities]",
)
@click.option("--cert", type=FILE, help="PEM: the client's certificate, for a gateway that asks for one.")
@click.option("--key", type=FILE, help="PEM: the client's private key.  [default: it is in --cert]")
@click.option("--token-file", type=FILE, help="A private file that holds the token.")
@click.option(
    "--executor-token-file",
    metavar="PATH",
    help="Where executors' machines have a private copy of DIR/driver/gateway.token; then no environment has it.",
)
@click.option("--client-id", metavar="NAME", help="The name of the token: Spark then uses OAuth2 (4.0 and later).")
@click.option(
    "--spark",
    "spark_version",
    metavar="VERSION",
    help="The version of Spark.  [default: the PySpark that is installed]",
)
def spark_conf(
    urls: tuple[str, ...],
    name: str | None,
    directory: str,
    ca: str | None,
    cert: str | None,
    key: str | None,
    token_file: str | None,
    executor_token_file: str | None,
    client_id: str | None,
    spark_version: str | None,
) -> None:
    """Print the settings of a Spark session for a gateway, for spark-defaults.conf, and write their files.

    Several addresses are gateways of one namespace. Spark asks them in this order, and knows them by one name.
    """
    from spark_wal.service import CheckpointService
    from spark_wal.spark_access import GatewayAccess

    try:
        given = None if token_file is None else read_secret(token_file)
        access = GatewayAccess(
            ca=ca,
            certificate=cert,
            key=key,
            token=given,
            client_id=client_id,
            executor_token_file=executor_token_file,
        )
        # the gateway need not run, and need not be reachable from here
        wal = CheckpointService.at(urls[0] if len(urls) == 1 else urls, access=access, name=name)
        conf = wal.spark_conf(directory, spark_version=spark_version)
        click.echo(f"# checkpointLocation={wal.location('NAME')}")
    except (ConfigError, OSError, ValueError) as error:
        raise click.ClickException(in_words(error)) from error
    for name, value in conf.items():
        click.echo(f"{name} {value}")
