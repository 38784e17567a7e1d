"""Create, open, delete, list: what is refused, and with which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.errors import (
    ClientClosedError,
    ConfigError,
    DigestMismatchError,
    LedgerExistsError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bookkeeper.ledger import DigestType
from tests.bookkeeper.client.scripted import ScriptedCluster, written


@pytest.mark.rule("Q5")
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"ensemble": 2}, "ensemble >= write_quorum >= ack_quorum >= 1"),
        ({"ack_quorum": 0}, "ensemble >= write_quorum >= ack_quorum >= 1"),
        ({"digest": "md5"}, "digest must be one of crc32, crc32c, dummy, hmac, mac, not md5"),
        ({"digest": "hmac"}, 'digest="hmac" needs a password'),
        ({"digest": "MAC", "password": b""}, 'digest="hmac" needs a password'),
        ({"when_short": "hope"}, "when_short must be one of fail, name_absent, not hope"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_before_anything_is_made(setting: dict[str, Any], message: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            with pytest.raises(ConfigError, match=message):
                await bk.create_ledger(**setting)
            assert [i async for i in bk.list_ledgers()] == []

    ScriptedCluster().run(story)


def test_defaults_are_three_copies_of_which_two_acknowledge_with_crc32c() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(custom_metadata={"k": b"v"}) as ledger:
            metadata = await bk.metadata(ledger.id)
            assert str(metadata.spec) == "E=3 Qw=3 Qa=2"
            assert metadata.digest_type is DigestType.CRC32C and metadata.custom == {"k": b"v"}
            assert metadata.ctime_ms is not None

    ScriptedCluster().run(story)


@pytest.mark.rule("M6")
def test_a_deleted_ledger_is_gone_and_its_id_is_not_given_out_again() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            first, second = await written(bk, 1), await written(bk, 1)
            assert [i async for i in bk.list_ledgers()] == [first, second]
            await bk.delete_ledger(second)
            assert not await bk.exists(second) and await bk.exists(first)
            with pytest.raises(NoSuchLedgerError):
                await bk.delete_ledger(second)
            assert await written(bk, 1) > second
            with pytest.raises(LedgerExistsError):
                await bk.create_ledger(ledger_id=first)

    ScriptedCluster().run(story)


def test_a_wrong_password_is_refused_before_any_bookie_is_asked() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(password=b"right") as ledger:
            await ledger.append(b"x")
            for bookie in cluster.bookies:
                bookie.requests.clear()
            with pytest.raises(UnauthorizedError, match="the password given is not the password of ledger"):
                await bk.open_ledger(ledger.id, b"wrong")
            assert not any(bookie.fenced for bookie in cluster.bookies)
            assert await ledger.append(b"y") == 1

    ScriptedCluster().run(story)


def test_a_closed_client_says_so() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            pass
        with pytest.raises(ClientClosedError, match=r"connect\(\) again"):
            await bk.create_ledger()
        await bk.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("X19")
def test_a_reader_that_insists_on_a_digest_opens_no_ledger_whose_metadata_name_another() -> None:
    """Cause: readers took the type from the metadata, and whoever may write these could name one that checks nothing.
    The writer of a ledger that is refused is not fenced."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", tamper_evident=True)
            await ledger.append(b"a")
            async with await bk.open_ledger(ledger.id, b"pw", recovery=False, digest="hmac") as reader:
                assert reader.metadata.digest_type is DigestType.HMAC
            ledgers = bk.metadata_store.ledgers
            found = await ledgers.read(ledger.id)
            await ledgers.write(ledger.id, replace(found.value, digest_type=DigestType.DUMMY), found.version)
            for recovery in (True, False):
                with pytest.raises(DigestMismatchError, match="have a DUMMY digest, and its reader insists on HMAC"):
                    await bk.open_ledger(ledger.id, b"pw", recovery=recovery, digest="hmac")
            assert await ledger.append(b"b") == 1
            with pytest.raises(ConfigError, match="digest must be one of"):
                await bk.open_ledger(ledger.id, b"pw", digest="sha256")
            await ledger.abandon()

    ScriptedCluster().run(story)


@pytest.mark.rule("X18")
def test_a_tool_opens_a_ledger_by_the_password_in_its_metadata() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(bk, 3, password=b"random")
            with pytest.raises(UnauthorizedError):
                await bk.open_ledger(ledger)
            async with await bk.open_ledger(ledger, None) as reader:
                assert reader.last_add_confirmed == 2

    ScriptedCluster().run(story)
