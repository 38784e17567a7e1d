from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from bookkeeper.errors import NoSuchKeyError
from segments.chain import StreamChain, StreamHead, encode_chain
from segments.chain.stream_chain import FOLD_AT
from segments.errors import ChainCorruptError
from segments.position import Position
from tests.journal_manager.backends.bookkeeper.fake import Cluster
from tests.segments.chain.pages import long_chain

COUNT = 2 * FOLD_AT + 500


def record_on(cluster: Cluster) -> StreamHead:
    return StreamHead(cast(Any, cluster.client().metadata_store), "id", "flights")


async def a_long_stream(cluster: Cluster) -> StreamHead:
    record = record_on(cluster)
    await record.create_if_absent(await record.pages.write_folded(long_chain(COUNT)))
    return record


async def keys(record: StreamHead) -> list[str]:
    return sorted(await record.store.children(record.path.replace("/chain", "/pages")))


async def replaced(record: StreamHead, chain: StreamChain) -> StreamChain:
    """Write the record; returns it as it is read then."""
    await record.write(chain, (await record.read())[1])
    return (await record.read())[0]


async def test_a_long_stream_is_read_as_a_whole_and_its_record_alone_is_small() -> None:
    record = await a_long_stream(Cluster())
    chain, _ = await record.read()
    assert tuple(chain.segments) == long_chain(COUNT).segments and len(chain.pages) == 3
    alone, _ = await record.recent.read()
    assert alone == chain and len(alone.recent) == COUNT - 3_000 and len(encode_chain(alone)) < 250_000


async def test_a_page_is_read_once() -> None:
    cluster = Cluster()
    await a_long_stream(cluster)
    record, read = record_on(cluster), []
    get = record.store.get

    async def counted(path: str) -> Any:
        read.append(path)
        return await get(path)

    record.store.get = counted  # type: ignore[method-assign]
    for _ in range(3):
        await record.read()
    assert len([path for path in read if "/pages/" in path]) == 3


async def test_a_page_that_goes_while_it_is_read_is_no_error() -> None:
    cluster = Cluster()
    writer, reader = await a_long_stream(cluster), record_on(cluster)
    get = reader.store.get

    async def late(path: str) -> Any:
        if "/pages/" in path and (await writer.read())[0].count == COUNT:
            chain = (await writer.read())[0].truncate(Position(1_501, 0, 0))
            await writer.pages.delete_unnamed(await replaced(writer, chain.remove(1_500)))
        return await get(path)

    reader.store.get = late  # type: ignore[method-assign]
    chain, _ = await reader.read()
    assert chain.first_number == 1_501 and len(chain.segments) == COUNT - 1_500
    assert len(await keys(writer)) == 2


@pytest.mark.parametrize("damage", ["gone", "changed"])
async def test_a_page_that_is_lost_or_damaged_is_told(damage: str) -> None:
    cluster = Cluster()
    record = await a_long_stream(cluster)
    path = f"{record.path.replace('/chain', '/pages')}/{(await keys(record))[1]}"
    if damage == "gone":
        await record.store.delete(path, None)
    else:
        await record.store.set(path, b"x" + (await record.store.get(path)).value[1:], None)
    with pytest.raises(ChainCorruptError, match="missing" if damage == "gone" else "damaged"):
        await record_on(cluster).read()
    with pytest.raises((NoSuchKeyError, ChainCorruptError)):
        await record_on(cluster).pages.read((await record.recent.read())[0].pages)
    assert (await record.recent.read())[0].count == COUNT  # whoever takes over needs none


async def test_a_page_that_an_earlier_attempt_left_is_replaced() -> None:
    record = await a_long_stream(Cluster())
    page = (await record.read())[0].pages[0]
    path = f"{record.path.replace('/chain', '/pages')}/{page.key}"
    await record.store.set(path, b"half", None)
    await record.pages.write(page)
    await record.pages.write(page)
    assert (await record.store.get(path)).value == page.value


async def test_only_pages_that_nobody_will_name_are_deleted() -> None:
    record = await a_long_stream(Cluster())
    chain, _ = await record.read()
    ours = (await replaced(record, chain.claim("b", "n2"))).next_page() or long_chain(FOLD_AT).next_page()
    assert ours is not None
    await record.pages.write(replace(ours, first=COUNT - 900, last=COUNT - 1, epoch=2))  # about to be named
    await record.pages.write(replace(ours, first=COUNT - 900, last=COUNT - 1, epoch=1))  # of an owner who was overtaken
    await record.pages.write(replace(ours, first=1, last=999, epoch=2))
    now, _ = await record.read()
    assert await record.pages.delete_unnamed(now) == 1
    gone = await replaced(record, now.truncate(Position(1_500, 0, 0)).remove(1_499))
    assert await record.pages.delete_unnamed(gone) == 2
    assert await record.pages.delete_unnamed(gone) == 0
    assert [key.split("-")[-1] for key in await keys(record)] == ["1", "1", "2"]
    assert (await record.read())[0].first_number == 1_500


async def test_a_short_stream_costs_no_look() -> None:
    cluster = Cluster()
    record = record_on(cluster)

    async def never(path: str) -> list[str]:
        raise AssertionError(path)

    record.store.children = never  # type: ignore[method-assign]
    assert await record.pages.delete_unnamed(long_chain(10)) == 0
