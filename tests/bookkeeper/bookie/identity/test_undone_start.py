"""A first start that is refused leaves nothing, also if its undoing is cut short. All of it: ``test_first_start``."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.identity.bookie_identity import (
    COOKIE,
    IDENTITY,
    BookieIdentity,
    read_cookie,
    settle_cookie,
    write_identity,
)
from bookkeeper.bookie.identity.undone_start import UNDONE, finish_undoing, undo_first_start
from bookkeeper.errors import CookieError
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.cookies import encode
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.testing import Node, NodeCrashed
from tests.bookkeeper.bookie.identity.test_bookie_identity import DIRECTORIES, cookie, run

pytestmark = pytest.mark.rule("K21")


async def joined(node: Node, metadata: Metadata, name: str = "b:1") -> None:
    """The cookie is made, the identity written, and something in each directory."""
    await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
    write_identity(node.disk, "/data", BookieIdentity(BookieId(name), 1))
    for directory in DIRECTORIES:
        replace_file(node.disk, f"{directory}/something", b"x")


async def finish(node: Node, metadata: Metadata, instance_id: str = "one") -> None:
    await finish_undoing(node.disk, metadata.cookies, instance_id, DIRECTORIES, "/data")


def left(node: Node) -> list[str]:
    return [
        name
        for place in ("/data", *DIRECTORIES)
        for name in node.disk.list(place)
        if name not in ("journal", "ledgers")
    ]


@pytest.mark.parametrize("power", [False, True])
def test_a_crash_between_any_two_steps_is_finished_or_undone_by_the_next_start(power: bool) -> None:
    outcomes = set()
    for step in range(60):

        async def main(node: Node, metadata: Metadata, step: int = step) -> str:
            await joined(node, metadata)
            node.disk.die_after(step)
            try:
                await undo_first_start(node.disk, metadata.cookies, cookie(), DIRECTORIES, "/data")
            except NodeCrashed:
                pass
            node.disk.crash() if power else node.disk.process_died()
            await finish(node, metadata)
            known = await metadata.cookies.known()
            if known:
                assert not await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
                assert len([name for name in left(node) if name == "something"]) == 2
                return "goes on"
            assert left(node) == []
            return "is undone"

        outcomes.add(run(main, step))
    assert outcomes == {"goes on", "is undone"}


async def marked(node: Node, place: str, **changes: object) -> None:
    replace_file(node.disk, f"{place}/{COOKIE}", encode(cookie(**changes)))
    replace_file(node.disk, f"{place}/{UNDONE}", b"")


def test_what_another_cluster_has_begun_to_undo_stays() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        await marked(node, DIRECTORIES[0], instance_id="another")
        await finish(node, metadata)
        assert read_cookie(node.disk, DIRECTORIES[0], COOKIE) == cookie(instance_id="another")

    run(main)


def test_the_notes_of_a_bookie_that_serves_stay() -> None:
    """It was given a directory in which the first start of another bookie, or of its own id, was being undone."""

    async def main(node: Node, metadata: Metadata) -> None:
        await joined(node, metadata, name="gone")
        await marked(node, DIRECTORIES[0], bookie_id=BookieId("gone"))
        await finish(node, metadata)
        assert not node.disk.exists(f"{DIRECTORIES[0]}/{UNDONE}")
        assert node.disk.exists(f"/data/{IDENTITY}")

    run(main)


def test_a_damaged_file_is_named() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        replace_file(node.disk, f"{DIRECTORIES[0]}/{COOKIE}", b"no cookie")
        replace_file(node.disk, f"{DIRECTORIES[0]}/{UNDONE}", b"")
        with pytest.raises(CookieError, match="VERSION is damaged"):
            await finish(node, metadata)

    run(main)
