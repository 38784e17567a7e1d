"""Every version opens what earlier ones have written: bookies, the SQLite store, an embedded directory, a gateway,
journals, streams."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, embedded
from bookkeeper.real import run
from tests.samples.growing_story import read_growing
from tests.samples.journal_story import JOURNALS, TAKEN_BACK, read_discarded, read_journal
from tests.samples.story import EARLIER, HOME, SAMPLES, gateway, read_files, read_ledgers, several_directories
from tests.samples.stream_story import read_long_stream, read_stream

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and not path.name.startswith("_"))
ALL = [(version, sample) for version in VERSIONS for sample in (*SAMPLES, *EARLIER.get(version, ()))]


@pytest.fixture
def home() -> Iterator[Path]:
    """The directory in which samples were written; one test of this machine has it at a time."""
    with open(f"{HOME}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir(mode=0o700)
        yield HOME
        shutil.rmtree(HOME)


def unpack(version: str, sample: str, home: Path) -> None:
    with tarfile.open(HERE / version / f"{sample}.tar.gz") as tar:
        tar.extractall(home, filter="data")


@pytest.mark.parametrize(("version", "sample"), ALL)
def test_what_an_earlier_version_wrote_is_read_and_written_on(
    version: str, sample: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: what this version makes of it at its first start, it must read at the next one; and then in the other
    layout of entry logs, and back."""
    unpack(version, sample, home)

    async def cluster() -> None:
        uri = f"embedded://{home}/embedded"
        async with BookKeeper.connect(uri) as bk:
            await read_ledgers(bk)
            async with gateway(uri) as address:
                await asyncio.to_thread(read_files, address)

    async def directories() -> None:
        with several_directories():
            async with BookKeeper.connect(f"embedded://{home}/directories") as bk:
                await read_ledgers(bk)

    async def directory() -> None:
        async with gateway(f"file://{home}/gateway") as address:
            await asyncio.to_thread(read_files, address)

    async def streams() -> None:
        async with BookKeeper.connect(f"embedded://{home}/streams") as bk:
            await read_stream(bk)

    async def pages() -> None:
        async with BookKeeper.connect(f"embedded://{home}/pages") as bk:
            await read_long_stream(bk)

    async def growing() -> None:
        async with gateway(f"file://{home}/growing") as address:
            await asyncio.to_thread(read_growing, address)

    kinds = {"gateway": directory, "embedded": cluster, "directories": directories, "streams": streams, "pages": pages}
    kinds |= {"growing": growing}
    work = kinds[sample.partition("-")[0]]
    for _ in range(2):
        run(work())
    monkeypatch.setitem(embedded.STORAGE, "entry_log_per_ledger", True)
    run(work())
    monkeypatch.setitem(embedded.STORAGE, "entry_log_per_ledger", False)
    run(work())


@pytest.mark.parametrize(("version", "sample"), [(version, sample) for version in VERSIONS for sample in JOURNALS])
def test_a_journal_of_an_earlier_version_is_read_recovered_and_written_on(
    version: str, sample: str, home: Path
) -> None:
    unpack(version, sample, home)
    for _ in range(2):
        run(read_journal(JOURNALS[sample][0]))


@pytest.mark.rule("J10")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sample", TAKEN_BACK)
def test_what_was_discarded_from_a_journal_of_an_earlier_version_stays_so(
    version: str, sample: str, home: Path
) -> None:
    unpack(version, sample, home)
    for _ in range(2):
        run(read_discarded(TAKEN_BACK[sample][0]))


def test_each_version_has_all_samples() -> None:
    assert VERSIONS
    found = {
        version: {path.name.removesuffix(".tar.gz") for path in (HERE / version).iterdir()} for version in VERSIONS
    }
    assert found == {version: {*SAMPLES, *JOURNALS, *TAKEN_BACK, *EARLIER.get(version, ())} for version in VERSIONS}
