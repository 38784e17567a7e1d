"""``bk stream`` on a cluster inside this process, made for each test, with one bookie."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from segments.commands import stream
from segments.config import StreamConfig
from segments.namespace import connect

ONE_BOOKIE = ("ensemble=1", "write_quorum=1", "ack_quorum=1", "roll.min_age_s=0")


class Streams:
    """The commands of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.uri = f"embedded://{directory}/bk?bookies=1"

    def run(self, *arguments: str, data: str | bytes | None = None, status: int = 0) -> str:
        """Run a command; returns what it printed."""
        result: Result = CliRunner().invoke(stream, arguments, input=data, env={"BK_METADATA": self.uri})
        assert result.exit_code == status, (result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.output

    def json(self, *arguments: str, status: int = 0) -> Any:
        """Run a command with --json."""
        return json.loads(self.run(*arguments, "--json", status=status))

    def create(self, name: str = "orders", *settings: str) -> None:
        """Make a stream that one bookie can serve."""
        self.filled(name, segments=0, settings=settings)

    def filled(self, name: str = "orders", *, segments: int = 3, settings: tuple[str, ...] = ()) -> None:
        """A stream of completed segments with three records each."""
        chosen = dict(setting.split("=", 1) for setting in (*ONE_BOOKIE, *settings))
        config = StreamConfig().patched(
            {key: json.loads(value) if value[0].isdigit() else value for key, value in chosen.items()}
        )

        async def work() -> None:
            async with connect(self.uri) as namespace:
                made = await namespace.create(name, config=config)
                if not segments:
                    return
                async with made.writer() as writer:
                    for number in range(segments):
                        await writer.append_batch([b"record %d" % (3 * number + n) for n in range(3)])
                        if number < segments - 1:
                            await writer.roll()

        asyncio.run(work())
