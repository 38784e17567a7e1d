"""A gateway in the test's own loop, on a cluster in a directory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from bookkeeper.ids import Address
from bookkeeper.real import system_seams
from segments.config import DEFAULTS
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.service import GrpcGatewayService, GrpcServingConfig

ANYWHERE = Address("127.0.0.1", 0)
CONFIG = replace(DEFAULTS, ensemble=1, write_quorum=1, ack_quorum=1)


@asynccontextmanager
async def served(directory: Path, **changes: object) -> AsyncIterator[GrpcGatewayService]:
    """A gateway with one bookie."""
    config = GrpcServingConfig(
        uri=f"embedded://{directory}/bk?bookies=1",
        listen=ANYWHERE,
        gateway=GrpcGatewayConfig(lease_s=0.5, drain_s=1.0),
        **changes,  # type: ignore[arg-type]
    )
    async with GrpcGatewayService(config, system_seams()) as service:
        yield service
