"""Replicas behind sockets and clients that find the active one: each request is done once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from examples.namenode_sim.client import Conversation, NameNodeClient
from examples.namenode_sim.errors import NamespaceError, NoAnswerError, ReplicaNotActiveError
from examples.namenode_sim.name_node import NameNode, NameNodeRole
from examples.namenode_sim.protocol import Question
from examples.namenode_sim.replica import ReplicaServer
from tests.examples.namenode_sim.test_name_node import CONFIG, journal, until

ANN = b"a" * 16


@asynccontextmanager
async def served(directory: Path, *, unfenced: bool = False) -> AsyncIterator[tuple[list[NameNode], list[str]]]:
    clock, uri = itertools.count(1), journal()
    nodes = [NameNode(uri, f"nn{n}", now_ms=lambda: next(clock), config=CONFIG) for n in (1, 2)]
    servers = [ReplicaServer(node, unfenced=unfenced) for node in nodes]
    paths = [str(directory / f"{node.name}.sock") for node in nodes]
    for server, path in zip(servers, paths, strict=True):
        await server.start(path)
    try:
        yield nodes, paths
    finally:
        for server in servers:
            await server.close()


async def test_a_client_finds_the_active_replica_and_follows_it(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        client = NameNodeClient(paths, ANN)
        await nodes[1].become_active()
        assert await client.do("mkdirs", path="/a") == 1
        assert client.repeated == 1, "the standby was asked first"
        await nodes[0].become_active()
        assert await client.do("mkdirs", path="/b") == 2
        found = await client.look("/b")
        assert found is not None and found["type"] == "DIRECTORY"
        assert await client.look("/c") is None
        with pytest.raises(NamespaceError, match="nothing at /c"):
            await client.do("delete", path="/c")
        await until(lambda: nodes[1].role is NameNodeRole.STANDBY)
        await client.close()


async def test_a_request_that_was_done_but_not_answered_is_not_done_again(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        await nodes[0].become_active()
        question = Question("create", {"path": "/f"}, ANN.hex(), 1)
        first = Conversation(paths[0])
        done = await first.ask(question)
        await first.close()
        await nodes[1].become_active()
        second = Conversation(paths[1])
        assert await second.ask(question) == done
        await second.close()
        assert nodes[1].namespace.txid == done


async def test_who_asks_nobody_is_told_that_the_outcome_is_unknown(tmp_path: Path) -> None:
    client = NameNodeClient([str(tmp_path / "nobody.sock")], ANN, patience_s=0.2)
    with pytest.raises(NoAnswerError, match="mkdirs"):
        await client.do("mkdirs", path="/a")


async def test_a_slow_answer_is_not_taken_for_that_of_the_next_question(tmp_path: Path) -> None:
    connections, may_answer = itertools.count(1), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = next(connections)
        while await reader.readline():
            await may_answer.wait()
            writer.write(b'{"answer": %d}\n' % connection)
        writer.close()

    path = str(tmp_path / "slow.sock")
    async with await asyncio.start_unix_server(slow, path):
        conversation = Conversation(path)
        with pytest.raises(ReplicaNotActiveError, match="no answer"):
            await conversation.ask(Question("status"), timeout_s=0.05)
        may_answer.set()
        assert await conversation.ask(Question("status"), timeout_s=5) == 2, "the answer of a new connection"
        await conversation.close()


async def test_the_operator_asks_and_orders(tmp_path: Path) -> None:
    async with served(tmp_path) as (nodes, paths):
        one, two = (Conversation(path) for path in paths)
        assert await one.ask(Question("become_active")) == 0
        assert await one.ask(Question("mkdirs", {"path": "/a"})) == 1
        status = await one.ask(Question("status"))
        assert (status["name"], status["role"], status["txid"], status["answered"]) == ("nn1", "active", 1, 1)
        await until(lambda: nodes[1].namespace.txid == 1)
        assert await one.ask(Question("digest")) == await two.ask(Question("digest"))
        await one.ask(Question("become_standby"))
        assert nodes[0].role is NameNodeRole.STANDBY
        with pytest.raises(NamespaceError, match="knows no 'explode'"):
            await two.ask(Question("become_active"))
            await two.ask(Question("explode"))
        for conversation in (one, two):
            await conversation.close()


@pytest.mark.parametrize("unfenced", [False, True])
async def test_only_sabotage_answers_after_being_overtaken(tmp_path: Path, unfenced: bool) -> None:
    async with served(tmp_path, unfenced=unfenced) as (nodes, paths):
        await nodes[0].become_active()
        await nodes[1].become_active()
        zombie = Conversation(paths[0])
        question = Question("mkdirs", {"path": "/a"})
        if unfenced:
            assert isinstance(await zombie.ask(question), int)
        else:
            with pytest.raises(ReplicaNotActiveError):
                await zombie.ask(question)
            await until(lambda: nodes[0].role is NameNodeRole.STANDBY)
        await zombie.close()
        assert nodes[1].namespace.find("/a") is None
