"""Calls that last end when a credential or a right is gone (X15), and two teams do not see each other's names (X12)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import Grant, Mode, Policy, PolicyChange, Resource, Right, Subject
from bookkeeper.audit import AuditConfig
from bookkeeper.gateways import long_requests
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.launchers.machine_speed import stretch
from segments.errors import StreamAccessError, StreamError
from segments.gateway.guard.call_guard import OpenCall
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.remote import GatewayCredentials, connect
from tests.segments.gateway.clusters import CONFIG, served

ALICE, BOB = new_token(), new_token()
NOTE = PolicyChange(1, "somebody", "a test")


def two_teams(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(token_line("alice", ALICE, ["/a"]) + token_line("bob", BOB, ["/b"]))
    path.chmod(0o600)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Task:
    """A task that counts how often it is cancelled."""

    cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


def opened() -> tuple[OpenCall, Task, list[bool]]:
    good = [True]

    def again() -> Caller:
        if not good[-1]:
            raise UnauthenticatedError("no")
        return Caller("a")

    task = Task()
    return OpenCall(GrpcCall(Caller("a"), again), task), task, good  # type: ignore[arg-type]


@pytest.mark.rule("X15")
def test_a_call_ends_behind_the_reply_that_is_on_its_way_and_by_force_if_its_client_does_not_read() -> None:
    call, task, good = opened()
    assert call.recheck()
    good.append(False)
    call.is_sending = True
    assert not call.recheck()
    assert task.cancelled == 0
    assert not call.recheck()
    assert task.cancelled == 1
    idle, task, good = opened()
    good.append(False)
    assert not idle.recheck()
    assert task.cancelled == 1
    orderly, task, good = opened()
    told: list[StreamError] = []
    orderly.call.on_end = told.append
    good.append(False)
    assert not orderly.recheck()
    assert (len(told), task.cancelled) == (1, 0), "it answers first what it has begun"
    assert not orderly.recheck()
    assert (len(told), task.cancelled) == (1, 1)


@pytest.mark.rule("X12")
async def test_two_teams_share_a_gateway_and_do_not_see_each_others_names(tmp_path: Path) -> None:
    """Cause: a watch told the former names of streams that were renamed into sight, and did not tell that one left."""
    async with (
        served(tmp_path, access=AccessConfig(token_file=str(two_teams(tmp_path)))) as gateway,
        connect(f"grpc://{gateway.address}", access=GatewayCredentials(token=ALICE)) as alices,
        connect(f"grpc://{gateway.address}", access=GatewayCredentials(token=BOB)) as bobs,
    ):
        admin = gateway._namespace
        assert admin is not None
        await alices.create("a/one", config=CONFIG)
        await bobs.create("b/one", config=CONFIG)
        assert [name async for name in alices.list()] == ["a/one"]
        seen = alices.channels.stream("Streams.Watch", pb.WatchStreamsRequest())
        async with asyncio.timeout(60 * stretch()):
            assert (await anext(seen)).stream == "a/one"
            await admin.rename("b/one", "a/two")
            event = await anext(seen)
            assert (event.kind, event.stream, event.former) == (pb.NamespaceEvent.KIND_CREATED, "a/two", "")
            await bobs.create("b/secret", config=CONFIG)
            await admin.rename("a/two", "b/two")
            event = await anext(seen)
            assert (event.kind, event.stream, event.former) == (pb.NamespaceEvent.KIND_DELETED, "a/two", "")
            await alices.rename("a/one", "a/three")
            event = await anext(seen)
            assert (event.stream, event.former) == ("a/three", "a/one")
        texts = []
        for name in ("b/secret", "b/nothing"):
            with pytest.raises(StreamAccessError) as refused:
                await alices.open(name)
            texts.append(str(refused.value).replace(name, "NAME"))
        assert texts[0] == texts[1], "whether it exists is not told"
        for source, target in (("a/three", "b/x"), ("b/secret", "a/x")):
            with pytest.raises(StreamAccessError, match="may not use stream b/"):
                await alices.rename(source, target)


async def drained(replies: AsyncIterator[Any], begun: asyncio.Event) -> None:
    async for _ in replies:
        begun.set()


@pytest.mark.rule("X15", "X16")
@pytest.mark.parametrize("by", ["token", "policy"])
async def test_every_kind_of_call_ends_soon_after_its_credential_or_its_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Cause: a token's end was enforced by the main door of another system and forgotten by the second one."""
    monkeypatch.setattr(long_requests, "LOOK_S", 0.02)
    tokens, audit = two_teams(tmp_path), tmp_path / "audit"
    access = AccessConfig(token_file=str(tokens), audit=AuditConfig(to=str(audit)))
    async with (
        served(tmp_path, access=access) as gateway,
        connect(f"grpc://{gateway.address}", access=GatewayCredentials(token=ALICE)) as namespace,
    ):
        assert gateway.access is not None and gateway._namespace is not None
        metadata = gateway._namespace.client.metadata_store
        stream = await namespace.create("a/s", config=CONFIG)
        writer = await stream.writer()
        await writer.append(b"while it was valid")
        begun = asyncio.Event()
        reader = stream.read(follow=True)
        assert (await reader.next_batch(1)).size
        watching = asyncio.ensure_future(
            drained(namespace.channels.stream("Streams.Watch", pb.WatchStreamsRequest()), begun)
        )
        async with asyncio.timeout(60 * stretch()):
            await begun.wait()
            if by == "token":
                tokens.write_text(token_line("bob", BOB, ["/b"]))
                gateway.access.refresh()
            else:
                read = Grant(Subject.parse("alice"), frozenset({Right.CREATE}), Resource.parse("streams:a"))
                await metadata.access.change(lambda _: Policy(Mode.ENFORCE, (read,)), NOTE)
            with pytest.raises(StreamAccessError):
                while True:
                    await reader.next_batch(1)
            if by == "token":
                with pytest.raises(StreamAccessError, match="credentials of this call are no longer valid"):
                    await watching
            with pytest.raises(StreamAccessError):
                while True:
                    await writer.append(b"until it is noticed")
        watching.cancel()
        await asyncio.wait([watching])
    ends = [line for line in lines_of(audit) if line["what"] == "deny"]
    assert {line["who"] for line in ends} == {"alice"}
    assert all(line["through"].startswith("grpc gateway") and not line["allowed"] for line in ends)
    why = "does not have the token" if by == "token" else "taken away: no grant gives alice the right to"
    assert any("Read.Tail" in line["on"] and why in line["reason"] for line in ends), ends
    assert any("Append.AppendStream" in line["on"] for line in ends), ends
    assert ALICE.reveal() not in audit.read_text()
