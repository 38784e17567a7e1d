"""A client and its handles are used in the loop that made them; elsewhere their user is told what to do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import BookKeeper
from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.errors import IllegalOperationError
from bookkeeper.launchers.machine_speed import stretch

ONE = {"ensemble": 1, "write_quorum": 1, "ack_quorum": 1}


async def test_the_own_loop_is_welcome() -> None:
    require_loop(asyncio.get_running_loop(), "it", "do something else")


def test_another_loop_and_none_are_told_apart() -> None:
    loop = asyncio.new_event_loop()

    async def elsewhere() -> None:
        with pytest.raises(IllegalOperationError, match="used in another one: connect again"):
            require_loop(loop, "it", "connect again")

    asyncio.run(elsewhere())
    with pytest.raises(IllegalOperationError, match="where none runs, in another thread or a forked process"):
        require_loop(loop, "it", "connect again")
    loop.close()


def test_every_method_says_where_it_belongs(tmp_path: Path) -> None:
    """Futures of one loop were awaited in another: the caller heard of tasks and futures that he never made, or of a
    loop that is closed, and an append was queued all the same."""

    async def made() -> list[Any]:
        bk = await BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1")
        writer = await bk.create_ledger(**ONE)  # type: ignore[call-overload]
        await writer.append(b"x")
        advanced = await bk.create_ledger(**ONE, advanced=True)  # type: ignore[call-overload]
        reader = await bk.open_ledger(writer.id, recovery=False)
        return [bk, writer, advanced, reader]

    async def consumed(entries: Any) -> None:
        async for _ in entries:
            pass

    async def used(bk: Any, writer: Any, advanced: Any, reader: Any) -> int:
        async def nowait(call: Callable[[], Any]) -> None:
            call()

        calls: list[Awaitable[Any]] = [
            bk.create_ledger(),
            bk.open_ledger(writer.id),
            bk.delete_ledger(writer.id),
            bk.exists(writer.id),
            consumed(bk.list_ledgers()),
            bk.close(),
            writer.append(b"y"),
            nowait(lambda: writer.append_nowait(b"y")),
            writer.append_many([b"y"]),
            writer.room(),
            writer.flush(),
            writer.force(),
            writer.close(),
            writer.abandon(),
            advanced.append_at(0, b"y"),
            nowait(lambda: advanced.append_at_nowait(0, b"y")),
            advanced.room(),
            reader.read_entry(0),
            reader.read_unconfirmed(0),
            reader.read_batch(0),
            consumed(reader.read(0, 0)),
            consumed(reader.tail()),
            reader.read_last_add_confirmed(),
            reader.wait_last_add_confirmed(0, timeout_ms=1),
            reader.close(),
        ]
        for call in calls:
            with pytest.raises(IllegalOperationError, match="belongs to the event loop in which it was made"):
                await call
        return len(calls)

    with asyncio.Runner() as home:
        parts = home.run(made())
        with asyncio.Runner() as elsewhere:
            assert elsewhere.run(used(*parts)) == 25
        bk, writer, *_ = parts

        async def at_home() -> None:
            assert await writer.append(b"z") == 1, "nothing of what was refused was queued"
            await bk.close()

        home.run(at_home())


FORKED = """
import os, sys
from bookkeeper import sync
from bookkeeper.errors import IllegalOperationError

bk = sync.BookKeeper.connect("embedded://" + sys.argv[1] + "?bookies=1")
ledger = bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
ledger.append(b"x")
child = os.fork()
if child == 0:
    import crc32c
    assert crc32c.crc32c(b"123456789") == 0xE3069283
    try:
        ledger.append(b"y")
    except IllegalOperationError as error:
        assert "a forked process must connect for itself" in str(error), error
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert ledger.append(b"z") == 1
bk.close()
"""


@pytest.mark.rule("P9")
def test_a_forked_child_is_told_to_connect_for_itself(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "bk")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60 * stretch(),
    )
    assert (done.returncode, done.stderr) == (0, "")
