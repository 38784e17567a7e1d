"""A replica as a process: a name node behind a local socket.

    python -m examples.namenode_sim.replica --name nn1 --socket FILE --journal bk:namenode --metadata URI

It begins as a standby. Who is active is decided from outside, by ``become_active``; the journal sees to it that only
one is. A replica that was overtaken stands by again by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bookkeeper import BookKeeper
from examples.demo_kit.slow_machine import client_config
from examples.namenode_sim.audit import digest_of
from examples.namenode_sim.errors import NamespaceError, ReplayError, ReplicaNotActiveError
from examples.namenode_sim.name_node import NameNode, NameNodeConfig, NameNodeRole
from examples.namenode_sim.protocol import (
    LINE_BYTES,
    LOOK,
    Question,
    decode_question,
    encode_answer,
    encode_error,
)
from journal_manager import JournalError, Member, RetentionPolicy

_LOOK_EVERY_S: Final = 0.2


class ReplicaServer:
    """Answers questions for one name node."""

    def __init__(self, node: NameNode, *, unfenced: bool = False) -> None:
        """
        Args:
            unfenced: sabotage. A replica that was overtaken goes on answering as if nothing had happened.
        """
        self._node = node
        self._unfenced = unfenced
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._for_operators: dict[str, Callable[[], Awaitable[Any]]] = {
            "status": self._status,
            "digest": self._digest,
            "become_active": self._become_active,
            "become_standby": node.become_standby,
        }

    async def start(self, path: str) -> None:
        """Stand by, and listen at the socket ``path``."""
        await self._node.start()
        self._server = await asyncio.start_unix_server(self._connected, path, limit=LINE_BYTES)
        self._watch = asyncio.create_task(self._stand_by_when_fenced())

    async def close(self) -> None:
        """End every conversation, and release the journal as a crash would."""
        if self._server is not None:
            self._server.close()
        tasks = [*self._connections, *([self._watch] if self._watch is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._node.close()

    async def _stand_by_when_fenced(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self._node.role is NameNodeRole.FENCED and not self._unfenced:
                await self._node.become_standby()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                writer.write(await self._answer(line))
                await writer.drain()
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # the client has gone, or its line is too long
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> bytes:
        try:
            question = decode_question(line)
            if (operate := self._for_operators.get(question.ask)) is not None:
                return encode_answer(await operate())
            return encode_answer(await self._ask_node(question))
        except (NamespaceError, ReplicaNotActiveError) as error:
            return encode_error(error)
        except (JournalError, ReplayError) as error:
            return encode_error(ReplicaNotActiveError(str(error)))

    async def _ask_node(self, question: Question) -> Any:
        try:
            if question.ask == LOOK:
                return await self._node.look(question.arguments["path"])
            return await self._node.submit(question.request())
        except ReplicaNotActiveError:
            if self._unfenced and self._node.role is NameNodeRole.FENCED:
                return self._node.namespace.txid
            raise

    async def _become_active(self) -> int:
        await self._node.become_active()
        return self._node.namespace.txid

    async def _status(self) -> dict[str, Any]:
        node = self._node
        status = {"name": node.name, "role": node.role.value, "txid": node.namespace.txid, "pid": os.getpid()}
        return status | asdict(node.stats) | {"inodes": node.namespace.last_inode_id}

    async def _digest(self) -> dict[str, Any]:
        return digest_of(self._node.namespace)


def copy_uri(directory: str) -> str:
    """The address of a journal's copy on this machine."""
    return Path(directory).absolute().as_uri()


def members_of(journal: str, client: BookKeeper, copy: str) -> list[Member]:
    """The journal that the replicas share, and a copy on this machine."""
    return [Member(journal, shared=True, options={"client": client}), Member(copy_uri(copy))]


async def run(
    name: str, path: str, journal: str, metadata: str, copy: str | None, config: NameNodeConfig, unfenced: bool
) -> None:
    """Serve until the process is asked to end."""
    async with BookKeeper.connect(metadata, config=client_config()) as client:
        await _run(name, path, journal, client, copy, config, unfenced)


async def _run(
    name: str, path: str, journal: str, client: BookKeeper, copy: str | None, config: NameNodeConfig, unfenced: bool
) -> None:
    options: dict[str, Any] = {"client": client}
    if copy is not None:
        journal, options = "set:", {"members": members_of(journal, client, copy)}
    node = NameNode(journal, name, now_ms=lambda: time.time_ns() // 1_000_000, config=config, **options)
    server = ReplicaServer(node, unfenced=unfenced)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await server.start(path)
    try:
        await ended.wait()
    finally:
        await server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="One replica of the name node.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--socket", required=True, help="where clients ask")
    parser.add_argument("--journal", required=True, help="the journal that both replicas share")
    parser.add_argument("--metadata", required=True, help="the cluster's metadata")
    parser.add_argument("--copy", help="a directory of this machine that gets a copy of the journal")
    parser.add_argument("--checkpoint-edits", type=int, default=NameNodeConfig().checkpoint_edits)
    parser.add_argument("--segment-edits", type=int, default=NameNodeConfig().segment_edits)
    parser.add_argument("--extra-edits", type=int, default=2000, help="edits that stay before the oldest checkpoint")
    parser.add_argument("--unfenced", action="store_true", help="sabotage: answer on after being overtaken")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = NameNodeConfig(
        checkpoint_edits=given.checkpoint_edits,
        segment_edits=given.segment_edits,
        retention=RetentionPolicy(extra_txns=given.extra_edits),
    )
    asyncio.run(run(given.name, given.socket, given.journal, given.metadata, given.copy, config, given.unfenced))


if __name__ == "__main__":
    main()
