"""A cluster inside this process with something to see, its console, and a browser that walks through it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from bookkeeper.console.panel_book import load_panels
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.location import Location
from bookkeeper.real import run
from tests.bookkeeper.console.served import Served, ledger, served
from tests.console_pages.browser import NoBrowserError, chromium, driver
from tests.console_pages.hostile import attack
from tests.console_pages.panel_contents import furnish_panels

BOOKIES: Final = ("b1", "b2", "b3", "b4", "b5")
RACKS: Final = {"b1": "/rack1", "b2": "/rack1", "b3": "/rack2", "b4": "/rack2", "b5": "/rack3"}
LEDGERS: Final = 230
"""More than two pages of the list."""
MARKUP: Final = "<img src=x onerror=alert(1)>"
WALK_S: Final = 400.0


async def furnish(served: Served) -> dict[str, int]:
    """Make what is to be seen. Returns the ledgers that are looked at, by what they are."""
    bk, metadata = served.bk, served.bk.metadata_store
    for name, rack in RACKS.items():
        await metadata.locations.put(BookieId(name), Location.parse(rack))
    for _ in range(LEDGERS):
        await ledger(bk, entries=3)
    changed = await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2, custom_metadata={"app": MARKUP.encode()})
    for part in range(3):
        await changed.append_many([b"x" * 100] * 400)
        if part < 2:
            gone = next(iter((await bk.metadata(changed.id)).last_fragment.ensemble))
            await served.bookies[gone].stop() if part == 0 else None
            await changed.append_many([b"x" * 100] * 100)
    still_open = await bk.create_ledger(ensemble=3, write_quorum=2, ack_quorum=2)
    await still_open.append_many([b"y" * 100] * 50)
    await changed.close()
    deleted = await ledger(bk)
    await bk.delete_ledger(deleted, grace_s=86_400)
    stopped = next(name for name, server in served.bookies.items() if server.health()["status"] != "ok")
    lacking = LedgerId(int(changed.id))
    await metadata.under_replication.mark(lacking, [BookieId(stopped)], bk.services.seams.clock.wall_ms())
    return {"changed": int(changed.id), "open": int(still_open.id), "deleted": deleted}


async def walk(python: str, browser: str, told: dict[str, Any], pictures: Path) -> int:
    """Let the browser go through all pages. Returns 0, or 1: something was not as it should be."""
    script = Path(__file__).with_name("walk.py")
    child = await asyncio.create_subprocess_exec(python, str(script), browser, json.dumps(told), str(pictures))
    try:
        async with asyncio.timeout(WALK_S):
            return await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def main(words: Sequence[str]) -> int:
    """The whole of ``make console-pages``."""
    parser = argparse.ArgumentParser(prog="make console-pages", description=__doc__)
    parser.add_argument("--keep", type=Path, help="a directory for the pictures, which are kept there")
    parser.add_argument("--only-hostile", action="store_true", help="only what pages of somebody else try")
    given = parser.parse_args(words)
    try:
        browser, python = chromium(), driver()
    except NoBrowserError as missing:
        print(f"SKIPPED: the console was not looked at in a browser: {missing}")
        return 0

    async def work(directory: Path) -> int:
        panels, unusable = load_panels()
        async with (
            served(
                directory, actions=("all",), panels=panels, unusable=unusable, bookies=BOOKIES, refresh_s=1.0
            ) as console,
            AsyncExitStack() as held,
        ):
            found = await furnish(console)
            await furnish_panels(console.bk, held)
            told = {"url": console.console.url, "token": console.token, "ledgers": found}
            pictures = given.keep or directory / "pictures"
            pictures.mkdir(parents=True, exist_ok=True)
            return await walk(python, browser, told, pictures)

    with tempfile.TemporaryDirectory(prefix="bk-console-") as directory:
        status = 0 if given.only_hostile else run(work(Path(directory)))
    with tempfile.TemporaryDirectory(prefix="bk-hostile-") as directory:
        status |= run(attack(python, browser, Path(directory)))
    done = "" if given.only_hostile else "every page was opened and clicked through, and "
    print(f"{done}no page of somebody else got in" if not status else "FAILED: see above", file=sys.stderr)
    return status
