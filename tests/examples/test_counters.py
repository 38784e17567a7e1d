"""The replicated counters of README, as processes: killed, paused, overtaken. Each answered call is counted once."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from examples.demo_kit.pause import pause
from journal_manager import EditLog, JournalFencedError, replicated
from tests.integration.processes import Bookies, bookies, end_with_parent, free_port, until_async

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "counters.py"

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Program:
    """One process of the program."""

    def __init__(self, journal: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._command = [sys.executable, str(PROGRAM), journal, self.address]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_parent
        )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def ask(self, line: str, deadline_s: float = 3.0) -> str | None:
        """One question on a connection of its own; None: no answer."""
        host, port = self.address.split(":")
        try:
            async with asyncio.timeout(deadline_s):
                reader, writer = await asyncio.open_connection(host, int(port))
                try:
                    writer.write(f"{line}\n".encode())
                    return (await reader.readline()).decode().strip() or None
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None


class Group:
    """Two processes of the program, and clients that ask until they get a number."""

    def __init__(self, journal: str, metadata: str = "") -> None:
        self.journal, self.metadata = journal, metadata
        self.programs = [Program(journal) for _ in range(2)]
        self.answered = 0
        self._calls = itertools.count(1)

    async def ask(self, line: str, deadline_s: float = 90.0) -> int:
        async with asyncio.timeout(deadline_s):
            for program in itertools.cycle(self.programs):
                said = await program.ask(line)
                if said is not None and re.fullmatch(r"\d+", said):
                    return int(said)
                await asyncio.sleep(0.05)
        raise AssertionError

    async def add(self, client: str = "test") -> int:
        value = await self.ask(f"add {client} {next(self._calls)} hits 1")
        self.answered += 1
        return value

    async def active(self) -> Program:
        async with asyncio.timeout(60):
            while True:
                for program in self.programs:
                    if re.fullmatch(r"\d+", await program.ask("get hits") or ""):
                        return program
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Clients add all the time."""
        ends = False

        async def client(name: str) -> None:
            while not ends:
                await self.add(name)

        clients = [asyncio.create_task(client(f"client{number}")) for number in range(3)]
        try:
            yield
            ends = True
            await asyncio.gather(*clients)
        finally:
            for task in clients:
                task.cancel()
            await asyncio.wait(clients)

    async def check(self) -> None:
        assert await self.ask("get hits") == self.answered > 0

    def end(self) -> None:
        for program in self.programs:
            program.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    with bookies(tmp_path_factory.mktemp("counters")) as found:
        yield found


_journals = itertools.count(1)


@pytest.fixture(params=["file", "bk"])
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Group]:
    if request.param == "file":
        found = Group(f"file://{tmp_path}/counters")
    else:
        uri = request.getfixturevalue("cluster").uri
        found = Group(f"bk:counters/{next(_journals)}?metadata={uri}", uri)
    yield found
    found.end()


@pytest.mark.rule("C4", "C8")
async def test_the_active_process_is_killed_again_and_again(group: Group) -> None:
    await group.add()
    async with group.load():
        for _ in range(3):
            program = await group.active()
            before = group.answered
            program.kill()
            await until_async(lambda before=before: group.answered >= before + 10)  # type: ignore[misc]
            program.start()
    await group.check()


@pytest.mark.rule("C5", "C8")
@pytest.mark.parametrize("group", ["bk"], indirect=True)
async def test_a_paused_process_that_wakes_up_answers_nothing_any_more(group: Group) -> None:
    await group.add()
    async with group.load():
        for _ in range(2):
            zombie = await group.active()
            before = group.answered
            await pause(zombie.pause, zombie.resume, group.metadata)
            await until_async(lambda before=before: group.answered >= before + 10)  # type: ignore[misc]
            waiting = asyncio.create_task(zombie.ask("get hits", deadline_s=30))
            late = asyncio.create_task(zombie.ask(f"add zombie {before} hits 1", deadline_s=30))
            await asyncio.sleep(0.2)
            zombie.resume()
            assert (await waiting or "").startswith("error")
            assert (await late or "").startswith("error")
    assert await group.ask(f"add zombie {0} hits 1") > 0
    group.answered += 1
    await group.check()


async def intrudes(journal: str) -> bool:
    """Become the journal's writer beside the program, and write an edit. Returns whether it was acknowledged."""
    with suppress(JournalFencedError):  # also while it claims the journal and recovers it
        intruder = await EditLog.open(journal, owner="intruder")
        try:
            await intruder.log(b"intruders 1")
        finally:
            await intruder.abort()
        return True
    return False


@pytest.mark.rule("C5", "C8")
async def test_a_second_writer_of_the_journal_fences_it_and_it_recovers(group: Group) -> None:
    await group.add()
    unknown = 0
    async with group.load():
        for _ in range(2):
            await group.active()
            while not await intrudes(group.journal):  # the program may take the journal back before the intruder writes
                unknown += 1
            before = group.answered
            await until_async(lambda before=before: group.answered >= before + 10)  # type: ignore[misc]
    assert 2 <= await group.ask("get intruders") <= 2 + unknown
    await group.check()


@pytest.mark.parametrize("group", ["bk"], indirect=True)
async def test_all_processes_are_killed_and_one_finds_everything(group: Group, cluster: Bookies) -> None:
    for _ in range(5):
        await group.add()
    for program in group.programs:
        program.kill()
    sys.path.insert(0, str(ROOT))
    from examples.counters import Counters

    counters = Counters()
    async with BookKeeper.connect(cluster.uri) as client:
        journal = group.journal.partition("?")[0]
        async with replicated(journal, counters, name="test", client=client) as replica:
            await replica.wait_until_active()
            assert await replica.read(lambda: counters.values) == {"hits": group.answered}


def test_readme_shows_the_program_as_it_is() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert PROGRAM.read_text() in blocks
    assert len(PROGRAM.read_text().splitlines()) <= 55
