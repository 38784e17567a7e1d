"""The walks of ARCHITECTURE.md are true and short: the files that they name take part in what they describe."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import segments
from bookkeeper import BookKeeper
from journal_manager import EditLog

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "ARCHITECTURE.md").read_text()
FILE: Final = re.compile(r"\]\(((?:bookkeeper|journal_manager|segments|spark_wal)/[\w/]+\.py)\)")
FILES_MAX: Final = 22
"""Of one walk: whoever has read so many files has seen all of it."""

Work = Callable[[], Awaitable[None]]


def named(walk: str) -> list[str]:
    """The modules that a walk names, in its order."""
    text = PAGE.partition(f"### {walk}\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    assert text, f"ARCHITECTURE.md has no walk {walk}"
    return [path for path in dict.fromkeys(FILE.findall(text)) if not path.endswith("__init__.py")]


@asynccontextmanager
async def an_append(uri: str) -> AsyncIterator[Work]:
    async with BookKeeper.connect(uri) as bk, await bk.create_ledger() as ledger:
        await ledger.append(b"first")

        async def work() -> None:
            await ledger.append(b"second")

        yield work


@asynccontextmanager
async def a_read(uri: str) -> AsyncIterator[Work]:
    async with BookKeeper.connect(uri) as bk:
        async with await bk.create_ledger() as ledger:
            await ledger.append_many([b"%d" % number for number in range(20)])

        async def work() -> None:
            async with await bk.open_ledger(ledger.id) as reader:
                assert len([entry async for entry in reader.read(0, 19)]) == 20  # in batches
                assert await reader.read_entry(3) == b"3"  # alone

        yield work


@asynccontextmanager
async def a_record(uri: str) -> AsyncIterator[Work]:
    async with segments.connect(uri) as namespace:
        stream = await namespace.open("orders", create=True)

        async def work() -> None:
            async with stream.producer("loader") as producer:
                await producer.append(b"first", seq=0)
            async with stream.writer() as writer:  # the next owner
                await writer.append(b"second")
                await writer.roll()

        yield work


@asynccontextmanager
async def an_edit(uri: str) -> AsyncIterator[Work]:
    async with await EditLog.open(f"bk+{uri}") as log:

        async def work() -> None:
            await log.log(b"edit")
            await log.roll()

        yield work


class Recorder:
    """Notes the modules whose functions run, on this thread and on those that begin later."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._is_on = False

    def __enter__(self) -> Recorder:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    async def files(self, work: Work) -> set[str]:
        """The modules that take part in ``work``."""
        self._is_on = True
        await work()
        self._is_on = False
        return {Path(name).relative_to(ROOT).as_posix() for name in self._found if name.startswith(f"{ROOT}/")}

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if self._is_on and event == "call":
            self._found.add(frame.f_code.co_filename)


WALKS: Final = {
    "An append": an_append,
    "A read": a_read,
    "A record of a stream": a_record,
    "An edit": an_edit,
}
ELSEWHERE: Final = {
    "bookkeeper/storage/checkpoint/checkpoint.py",  # later, on the checkpoint's thread
    "segments/remote/append_pipe.py",  # where there is a gateway
    "journal_manager/journals/open_journal.py",  # before the first edit
    "journal_manager/read/tailer.py",  # in readers
    "journal_manager/edits/selection.py",
}
"""Files that a walk names for what comes before or after it."""


@pytest.mark.parametrize("walk", WALKS)
async def test_the_files_of_a_walk_take_part_in_it(walk: str, tmp_path: Path) -> None:
    files = named(walk)
    with Recorder() as recorder:
        async with WALKS[walk](f"embedded://{tmp_path}/bk?bookies=3") as work:
            ran = await recorder.files(work)
    assert [path for path in files if path not in ran and path not in ELSEWHERE] == []


@pytest.mark.parametrize("walk", re.findall(r"^### (.+)$", PAGE.partition("walks\n")[2], re.MULTILINE))
def test_a_walk_is_short(walk: str) -> None:
    assert len(named(walk)) <= FILES_MAX
