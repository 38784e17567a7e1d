"""The console as a process: it says where it serves, and ends by a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from bookkeeper.audit import AuditConfig
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.process import serve
from bookkeeper.real import run
from tests.bookkeeper.console.served import served


def test_it_serves_until_a_signal_comes(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with served(tmp_path, bookies=()) as cluster:
            said: list[str] = []
            told = asyncio.Event()

            def tell(line: str) -> None:
                said.append(line)
                told.set()

            config = ConsoleConfig(listen="127.0.0.1:0")
            task = asyncio.create_task(serve(cluster.bk, "test", "memory:", config, tell, AuditConfig()))
            await told.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            await task
            return said

    (line,) = run(main())
    assert line.startswith("the console serves at http://127.0.0.1:")
