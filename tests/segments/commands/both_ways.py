"""``bk stream`` with the address of a cluster, or of a gateway on it, on the test's own loop."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from segments.commands import shared, stream
from segments.gateway.service import GrpcGatewayService
from tests.segments.gateway.clusters import served

T = TypeVar("T")


class BothWays:
    """The commands of one cluster, by either address. gRPC's client does not outlive the loop that it began with, so
    all commands run on the test's."""

    def __init__(self, gateway: GrpcGatewayService, directory: Path) -> None:
        self.gateway = gateway
        self.uris = {"direct": f"embedded://{directory}/bk?bookies=1", "gateway": f"grpc://{gateway.address}"}

    async def run(self, way: str, *arguments: str, data: bytes | None = None) -> tuple[int, str]:
        """Run a command: its exit status, and what it printed."""
        runner = CliRunner()
        result = await asyncio.to_thread(
            runner.invoke, stream, arguments, input=data, env={"BK_METADATA": self.uris[way], "COLUMNS": "250"}
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    async def json(self, way: str, *arguments: str) -> Any:
        """Run a command with --json."""
        status, said = await self.run(way, *arguments, "--json")
        assert status == 0, said
        return json.loads(said)


@asynccontextmanager
async def both_ways(directory: Path, patch: pytest.MonkeyPatch, **changes: object) -> AsyncIterator[BothWays]:
    """The commands, with a gateway and its cluster in this loop."""
    loop = asyncio.get_running_loop()

    def finish(work: Coroutine[Any, Any, T], **_: bool) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    patch.setattr(shared, "finish", finish)
    async with served(directory, **changes) as gateway:
        yield BothWays(gateway, directory)


def without_chance(said: str) -> str:
    """What a command said, without what differs between two clusters: ids, times, addresses."""
    said = re.sub(r"[0-9a-f]{32}", "ID", said)
    said = re.sub(r"export-[0-9a-f]{16}", "export-ID", said)
    said = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "TIME", said)
    said = re.sub(r"seconds_behind\": [\d.]+", "seconds_behind", said)
    said = re.sub(r"_ms\": \d{13}", "_ms", said)
    said = re.sub(r"-n-\d+ of|the first is \d+ s old|completed [\d.]+ s ago|[\d.]+ s old", "AGE", said)
    return re.sub(r"\s+", " ", said)
