"""``bk gateway grpc``."""

from __future__ import annotations

from typing import Any

import click

from bookkeeper.admin.shared.options import given_cluster
from bookkeeper.gateways.command_options import AddressType, access_config, access_options, limit, metadata_session
from bookkeeper.gateways.gateway_process import run_gateway
from bookkeeper.ids import Address
from bookkeeper.program_log import log_option
from bookkeeper.real import system_seams
from segments.errors import StreamError
from segments.gateway.config import DEFAULT_LISTEN, GrpcGatewayConfig, GrpcLimits
from segments.gateway.service import GrpcGatewayService, GrpcServingConfig


@click.command()
@click.option(
    "--metadata",
    "-m",
    envvar="BK_METADATA",
    callback=given_cluster,
    metavar="URI",
    help="The cluster (zk+hierarchical://..., sqlite:///..., embedded:///DIR). [env: BK_METADATA]",
)
@click.option(
    "--listen",
    type=AddressType(),
    default=str(DEFAULT_LISTEN),
    show_default=True,
    help="The address at which calls are accepted.",
)
@click.option("--advertise", metavar="HOST:PORT", help="The address that clients use, if it is another one.")
@click.option(
    "--http", type=AddressType(), help="Where /healthz, /livez, /readyz and /metrics are shown.  [default: nowhere]"
)
@click.option("--http-insecure", is_flag=True, help="Allow --http beyond loopback: these pages change nothing.")
@click.option("--reflection", is_flag=True, help="Tell the protocol to clients that ask for it, by gRPC's reflection.")
@access_options
@limit("--connections-max", GrpcLimits, "connections_max", "Connections at a time; one more waits.")
@limit("--calls-per-connection-max", GrpcLimits, "calls_per_connection_max", "Calls at a time on one connection.")
@limit("--message-bytes-max", GrpcLimits, "message_bytes_max", "The size of the largest message, in bytes.")
@limit("--call-bytes-max", GrpcLimits, "call_bytes_max", "Bytes of requests in progress, of all clients.")
@limit("--address-bytes-max", GrpcLimits, "address_bytes_max", "Bytes of requests in progress, of one address.")
@limit("--address-calls-max", GrpcLimits, "address_calls_max", "Calls at a time of one address; one more is refused.")
@limit("--window-bytes", GrpcLimits, "window_bytes", "Bytes of one streaming append that may be unanswered.")
@metadata_session
@log_option
@limit("--lease-s", GrpcGatewayConfig, "lease_s", "Seconds for which an owner may answer after its last renewal.")
@limit("--idle-s", GrpcGatewayConfig, "idle_s", "Seconds without an append after which a stream is given up.")
@limit("--drain-s", GrpcGatewayConfig, "drain_s", "Seconds that calls may take to end after SIGTERM.")
def grpc(**options: Any) -> None:
    """Run a gateway of streams: clients of any language append and read by gRPC (grpc://HOST:PORT).

    Run two or more on one cluster: each stream is owned by one of them. The others send appends there, serve reads
    themselves, and take over when the owner ends. The protocol is the file segments.proto of this package; with
    --reflection the gateway tells it, too.

    With --tls-cert and --tls-key, and --client-ca or --token-file, the gateway may listen beyond this machine. A token
    of bk gateway token with --root /PATH is valid for the streams below that path. SIGTERM ends the gateway in good
    order.
    """
    run_gateway(
        lambda: _serving_config(**options),
        lambda config: GrpcGatewayService(config, system_seams()),
        lambda config, service: f"grpc://{config.advertise or service.address} serves the streams of {config.uri}",
        failures=(StreamError,),
        farewell="the gateway ends: it gives up its streams",
    )


def _serving_config(
    *,
    metadata: str,
    listen: Address,
    advertise: str | None,
    http: Address | None,
    http_insecure: bool,
    reflection: bool,
    connections_max: int,
    calls_per_connection_max: int,
    message_bytes_max: int,
    call_bytes_max: int,
    address_bytes_max: int,
    address_calls_max: int,
    window_bytes: int,
    lease_s: float,
    metadata_session_s: float,
    idle_s: float,
    drain_s: float,
    **access: Any,
) -> GrpcServingConfig:
    """The settings of a gateway with these options. Raises: ConfigError."""
    return GrpcServingConfig(
        uri=metadata,
        listen=listen,
        advertise=advertise,
        http=http,
        http_insecure=http_insecure,
        reflection=reflection,
        access=access_config(**access),
        limits=GrpcLimits(
            connections_max=connections_max,
            calls_per_connection_max=calls_per_connection_max,
            message_bytes_max=message_bytes_max,
            call_bytes_max=call_bytes_max,
            address_bytes_max=address_bytes_max,
            address_calls_max=address_calls_max,
            window_bytes=window_bytes,
        ),
        gateway=GrpcGatewayConfig(
            lease_s=lease_s, metadata_session_s=metadata_session_s, idle_s=idle_s, drain_s=drain_s
        ),
    )
