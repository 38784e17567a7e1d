from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import BookKeeper
from bookkeeper.errors import ConfigError
from segments import connect
from segments.arguments import check_timeout, checked_seek
from segments.errors import SeekFormatError, StreamConfigError, StreamError, StreamNameError
from segments.position import EARLIEST, LATEST, Position
from segments.remote import connect as connect_gateways
from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId
from tests.segments.gateway.clusters import CONFIG, served


def test_a_place_is_one_of_the_types() -> None:
    for place in (EARLIEST, LATEST, Position(1, 2, 3), AtSeqNo(1), AtTxId(1), AtCursor("c"), Ago(timedelta(1))):
        assert checked_seek(place) is place
    now = AtTime(datetime.now(UTC))
    assert checked_seek(now) is now
    with pytest.raises(SeekFormatError, match=r"segments\.parse_seek"):
        checked_seek("earliest")
    for wrong in (5, None, AtSeqNo("1"), AtTxId(1.5), AtTime("now"), Ago(5), AtCursor(7)):  # type: ignore[arg-type]
        with pytest.raises(SeekFormatError, match="no position in a stream"):
            checked_seek(wrong)


def test_a_timeout_is_a_number_of_seconds() -> None:
    for good in (None, 0, 1.5, math.inf):
        check_timeout(good)
    for wrong in (math.nan, "1", True):
        with pytest.raises(StreamConfigError, match="a timeout is a number of seconds, not"):
            check_timeout(wrong)


@pytest.mark.parametrize("through", ["library", "gateway"])
async def test_mistaken_arguments_are_refused_by_name_before_anything_is_done(tmp_path: Path, through: str) -> None:
    """Cause: places and timeouts were used before anybody looked at them. A producer's record was even submitted, and
    then the caller got asyncio's own ValueError for its timeout.
    """
    async with served(tmp_path) as gateway:
        assert gateway._namespace is not None
        client: Any = gateway._namespace.client
        uri = f"grpc://{gateway.address}"
        async with connect(uri) if through == "gateway" else connect("", client=client) as namespace:
            stream: Any = await namespace.create("s", config=CONFIG)
            for place in ("earliest", 5):
                with pytest.raises(StreamError, match="no position in a stream"):
                    await stream.read(place).next()
                for method in (stream.find, stream.count):
                    with pytest.raises(StreamError, match="no position in a stream"):
                        await method(place)
            async with stream.writer() as writer:
                for timeout in (math.nan, "1"):
                    with pytest.raises(StreamConfigError, match="a timeout is a number"):
                        await writer.append(b"v", timeout=timeout)
                for txid in (2**63 - 1, -(2**63) - 1):
                    with pytest.raises(OverflowError, match=r"goes from -2\*\*63 to 2\*\*63 - 2"):
                        await writer.append(b"v", txid=txid)
                with pytest.raises(TypeError, match="a record must be bytes or a Record, not str"):
                    await writer.append("text")
            async with stream.producer("p") as producer:
                with pytest.raises(StreamConfigError, match="a timeout is a number"):
                    await producer.append(b"v", seq=1, timeout=math.nan)
            assert await stream.count() == 0


@pytest.mark.parametrize("through", ["library", "gateway"])
async def test_a_producer_that_is_used_wrongly_spoils_nothing(tmp_path: Path, through: str) -> None:
    """Cause: numbers were compared and never asked whether they are whole. 1.0 passed for 1, could not be put into its
    entry, and every append of the stream waited for ever. Through a gateway -1 was sent, was the next number after the
    refusal, and ``outcome(-1)`` said of a producer without records that it was appended.
    """
    async with served(tmp_path) as gateway:
        assert gateway._namespace is not None
        client: Any = gateway._namespace.client
        uri = f"grpc://{gateway.address}"
        async with connect(uri) if through == "gateway" else connect("", client=client) as namespace:
            stream: Any = await namespace.create("s", config=CONFIG)
            with pytest.raises(StreamConfigError, match='gap is "strict" or "monotonic"'):
                await stream.producer("p", gap="Strict")
            with pytest.raises(StreamConfigError, match="the epoch of a producer is a whole number"):
                await stream.producer("p", epoch=1.5)
            async with asyncio.timeout(10), stream.producer("p") as producer:
                for wrong in (0.0, "0", True, -1, 2**63 - 1):
                    with pytest.raises(StreamConfigError, match=r"is a whole number|numbers its records from 0 to"):
                        await producer.append(b"v", seq=wrong)
                    with pytest.raises(StreamConfigError, match=r"is a whole number|numbers its records from 0 to"):
                        await producer.outcome(wrong)
                assert (producer.next_seq, producer.last_seq) == (0, None)
                await producer.append(b"v", seq=0)
                assert (await producer.append(bytearray(b"w"))).duplicate is False
            assert await stream.count() == 2
            with pytest.raises(StreamConfigError, match="on_gap must be"):
                await stream.read(on_gap="Raise").next()


@pytest.mark.parametrize("wrong", [None, 5, b"x"])
async def test_names_and_addresses_of_another_type_are_refused_by_name(tmp_path: Path, wrong: Any) -> None:
    """Cause: the types of names and addresses were not looked at: a caller got a bare AttributeError or TypeError."""
    with pytest.raises(StreamConfigError, match="an address is a text"):
        await connect(wrong)
    with pytest.raises(StreamConfigError, match="an address is a text"):
        await connect_gateways(wrong)
    with pytest.raises(ConfigError, match="an address is a text"):
        await BookKeeper.connect(wrong)
    async with served(tmp_path) as gateway:
        assert gateway._namespace is not None
        client: Any = gateway._namespace.client
        for uri in (f"grpc://{gateway.address}", ""):
            async with connect(uri, client=None if uri else client) as namespace:
                for call in (namespace.open, namespace.create, namespace.exists):
                    with pytest.raises(StreamNameError, match="a stream's name is a text"):
                        await call(wrong)
