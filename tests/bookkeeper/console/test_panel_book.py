"""Panels of installed packages: which are used, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.metadata import EntryPoint
from typing import Any, cast

import pytest

from bookkeeper.console import panel_book
from bookkeeper.console.panel_book import PanelBook, PanelError, load_panels
from bookkeeper.console.panels import PANEL_GROUP, PanelContext, PanelNote, PanelPage, PanelTable
from bookkeeper.testing.world import Node, World

HERE = "tests.bookkeeper.console.test_panel_book"


async def _on(node: Node, work: Coroutine[Any, Any, None]) -> None:
    await node.run(work)


class GoodPanel:
    name = "good"
    title = "Good"

    async def snapshot(self, context: PanelContext) -> PanelPage:
        return PanelPage((PanelNote("fine"),))

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        if key == "slow":
            await asyncio.sleep(3600)
        return PanelPage((PanelTable(("a",), ((1, 2),)),)) if key == "wrong" else None


class BadlyNamedPanel(GoodPanel):
    name = "Bad/Name"


GOOD, TWICE, BADLY_NAMED, NO_PANEL = GoodPanel(), GoodPanel(), BadlyNamedPanel(), object()


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, PANEL_GROUP)


def test_what_cannot_be_used_is_told_and_the_others_are_used() -> None:
    found = [
        entry("a-good", f"{HERE}:GOOD"),
        entry("b-twice", f"{HERE}:TWICE"),
        entry("c-named", f"{HERE}:BADLY_NAMED"),
        entry("d-no-panel", f"{HERE}:NO_PANEL"),
        entry("e-lacks", "no_such_package.panels:PANEL"),
        entry("f-nothing", f"{HERE}:NOTHING"),
    ]
    panels, unusable = load_panels(found)
    assert panels == [GOOD]
    assert {each.name: each.problem.split(":")[0] for each in unusable}.keys() == {
        "b-twice",
        "c-named",
        "d-no-panel",
        "e-lacks",
        "f-nothing",
    }
    said = " ".join(each.problem for each in unusable)
    for words in ("another panel of the name good", "small letters", "is no panel", "package no_such_package"):
        assert words in said


def test_the_installed_packages_panels_can_all_be_used() -> None:
    _, unusable = load_panels()
    assert unusable == []


def test_details_that_are_wrong_or_slow_are_refused_by_a_sentence() -> None:
    world = World(1)
    node = world.node("console")

    async def main() -> None:
        context = PanelContext(cast("Any", None), "memory:", node.seams.clock)
        book = PanelBook([GOOD], [], context)
        assert [each.name for each in book] == ["good"] and book.get("none") is None
        assert await book.detail("good", "other") is None
        with pytest.raises(PanelError, match="row 0 of a table without title has 2 cells"):
            await book.detail("good", "wrong")
        with pytest.raises(PanelError, match="longer than 10 s"):
            await book.detail("good", "slow")
        running = asyncio.get_running_loop().create_task(book.run())
        await asyncio.sleep(1)
        page = book.resident("good").get().value
        assert page is not None and page.blocks == (PanelNote("fine"),)
        running.cancel()

    with world:
        world.run(_on(node, main()))
    assert panel_book.EVERY_S > 1
