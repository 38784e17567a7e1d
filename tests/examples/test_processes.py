"""Children that are killed as a group, and end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper.launchers.waiting import StalledError
from examples.processes import Child, Children
from tests.integration.processes import until, until_async

FAMILY = (
    "import subprocess, sys, time;"
    "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print(inner.pid, flush=True); time.sleep(600)"
)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def start(children: Children, script: str, name: str = "child") -> Child:
    return await children.start(name, [sys.executable, "-c", script], pipe_output=True)


async def test_a_child_and_its_children_are_killed_as_one(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        child = await start(children, FAMILY)
        grandchild = int(await child.stdout.readline())
        before = child.alive
        await child.kill()
        assert (before, child.alive) == (True, False)
        assert await child.wait() == -signal.SIGKILL
        await until_async(lambda: gone(grandchild), 20)
        child.signal(signal.SIGKILL)  # of one that has ended: nothing


async def test_leaving_ends_every_one_also_those_that_are_paused_or_do_not_want_to(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        polite = await start(children, FAMILY, "polite")
        paused = await start(children, FAMILY, "paused")
        inner = [int(await child.stdout.readline()) for child in (polite, paused)]
        paused.signal(signal.SIGSTOP)
    assert await polite.wait() == -signal.SIGTERM
    assert await paused.wait() == -signal.SIGTERM
    await until_async(lambda: all(map(gone, inner)), 20)


async def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.processes._END_GRACE_S", 0.1)
    async with Children(tmp_path) as children:
        deaf = (
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
        )
        child = await start(children, deaf)
        await child.stdout.readline()
    assert await child.wait() == -signal.SIGKILL


async def test_a_child_s_last_words_are_kept(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        script = "import sys; [print(n, file=sys.stderr) for n in range(30)]; sys.exit(7)"
        child = await children.start("talker", [sys.executable, "-c", script], environment={"X": "y"})
        assert await child.wait() == 7
        assert child.last_words(3) == "27\n28\n29"
        assert child.log == tmp_path / "talker.log"


PARENT = """
import asyncio, sys
from pathlib import Path
from examples.processes import Children

async def main():
    children = Children(Path(sys.argv[1]))
    child = await children.start("child", [sys.executable, "-c", "import time; time.sleep(600)"])
    print(child.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal")
def test_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    until(lambda: Path(f"/proc/{child}/cmdline").read_bytes().endswith(b"time.sleep(600)\0"), 20)
    parent.kill()
    parent.communicate()
    until(lambda: gone(child), 20)


async def test_one_that_is_waited_for_is_up_when_it_says_so_and_not_by_what_an_earlier_one_has_said(
    tmp_path: Path,
) -> None:
    async with Children(tmp_path) as children:
        for number in range(2):
            script = f"import sys, time; time.sleep(0.1); print('serves {number}', file=sys.stderr); time.sleep(600)"
            child = await start(children, script)
            await child.until_said(rf"^serves {number}$", "the child")
            assert child.said == f"serves {number}\n"
            await child.kill()


async def test_one_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        child = await start(children, "raise SystemExit('the port is taken')")
        with pytest.raises(StalledError, match=r"(?s)the child has ended.*the port is taken"):
            await child.until_said("serves", "the child")
        await child.until_ended()
