"""A replica's snapshot is read back however it is divided into chunks, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalCorruptionError, UnsupportedLayoutError
from journal_manager.replicas.replica_snapshot import divided, joined
from tests.spark_wal.webhdfs.virtual import in_virtual_time


async def each(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(chunks: Iterable[bytes]) -> tuple[bytes, bytes]:
    table, rest = await divided(each(chunks))
    return table, b"".join([chunk async for chunk in rest])


@given(st.binary(max_size=30), st.lists(st.binary(max_size=10), max_size=5), st.integers(1, 40))
@in_virtual_time
async def test_it_is_read_back_in_any_chunks(table: bytes, chunks: list[bytes], size: int) -> None:
    content = b"".join(joined(table, chunks))
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert await read(pieces) == (table, b"".join(chunks))


@given(st.binary(max_size=30), st.data())
@in_virtual_time
async def test_one_that_is_cut_within_the_table_is_refused(table: bytes, data: st.DataObject) -> None:
    content = b"".join(joined(table, []))
    with pytest.raises(JournalCorruptionError, match="ends after"):
        await read([content[: data.draw(st.integers(0, len(content) - 1))]])


@in_virtual_time
async def test_what_another_program_wrote_is_refused() -> None:
    with pytest.raises(JournalCorruptionError, match="not written by a replica"):
        await read([b"something else altogether"])
    content = bytearray(b"".join(joined(b"", [])))
    content[5] = 2
    with pytest.raises(UnsupportedLayoutError, match="format 2"):
        await read([bytes(content)])
