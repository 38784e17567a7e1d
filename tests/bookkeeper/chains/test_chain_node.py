"""A record at its path: read as it is now, made once, replaced by version."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import MetadataConflictError, NoSuchKeyError
from tests.bookkeeper.chains.pages import Page, Shelf


async def test_a_record_is_made_once() -> None:
    record = Shelf().record()
    with pytest.raises(NoSuchKeyError):
        await record.read()
    await record.create_if_absent(Page(text="one"))
    await record.create_if_absent(Page(text="two"))
    assert (await record.read())[0] == Page(text="one")


async def test_of_two_writes_over_one_version_one_wins() -> None:
    shelf = Shelf()
    one, two = shelf.record(), shelf.record()
    await one.create_if_absent(Page())
    _, version = await one.read()
    await one.write(Page(text="one"), version)
    with pytest.raises(MetadataConflictError):
        await two.write(Page(text="two"), version)
    assert (await two.read())[0].text == "one"


async def test_changes_are_told() -> None:
    shelf = Shelf()
    record, told = shelf.record(), asyncio.Event()
    await record.create_if_absent(Page())
    watch = record.watch(told.set)
    _, version = await record.read()
    await shelf.record().write(Page(text="new"), version)
    await asyncio.wait_for(told.wait(), 5)
    watch.close()
