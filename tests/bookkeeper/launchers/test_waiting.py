from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper.launchers import waiting
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import (
    LOOK_LONGEST_S,
    ProgressSource,
    StalledError,
    cpu_seconds,
    grown,
    pause_s,
    until,
    until_async,
)

pytestmark = pytest.mark.rule("V9")


def test_it_returns_what_the_condition_returned() -> None:
    answers = iter(["", "", "there"])
    assert until(lambda: next(answers), "it") == "there"


def test_the_same_without_holding_up_the_loop_also_for_a_coroutine() -> None:
    async def work() -> None:
        answers = iter([0, 0, 7, 0, 8])
        assert await until_async(lambda: next(answers), "it") == 7

        async def ask() -> int:
            return next(answers)

        assert await until_async(ask, "it") == 8

    asyncio.run(work())


def test_a_wait_for_somebody_who_makes_no_progress_ends_and_says_what_it_said_last(tmp_path: Path) -> None:
    log = tmp_path / "b1.log"
    log.write_text("importing\nopening storage\n")
    with pytest.raises(StalledError, match=r"(?s)^bookie b1 is not there, and nothing has happened.*opening storage"):
        until(lambda: False, "bookie b1", ProgressSource(logs=[log]), quiet_s=0.2)


def test_a_wait_for_a_process_that_has_ended_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(StalledError, match="bookie b1 has ended"):
        until(lambda: False, "bookie b1", ProgressSource(logs=[tmp_path / "none"], runs=lambda: False))


def test_the_two_kinds_of_waits_end_alike(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(StalledError, match="has ended"):
            await until_async(lambda: False, "it", ProgressSource(runs=lambda: False))
        with pytest.raises(StalledError, match="is not there"):
            await until_async(lambda: False, lambda: "it", quiet_s=0.2)

    asyncio.run(work())


def test_a_line_that_was_not_said_before_is_a_sign_and_one_that_repeats_is_none(tmp_path: Path) -> None:
    log = tmp_path / "b1.log"
    watched = ProgressSource(logs=[log])
    seen = [watched.signs()]
    for line in ("importing", "lost contact 1 s", "lost contact 2 s", "lost contact 17 s", "registered"):
        with log.open("a") as file:
            file.write(f"{line}\n")
        seen.append(watched.signs())
    assert [one != other for one, other in itertools.pairwise(seen)] == [True, True, False, False, True]


def test_half_a_line_is_counted_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "b1.log"
    watched = ProgressSource(logs=[log])
    log.write_text("import")
    before = watched.signs()
    log.write_text("importing\n")
    assert watched.signs() != before


def test_files_that_grow_are_a_sign(tmp_path: Path) -> None:
    (tmp_path / "b1").mkdir()
    watched = ProgressSource(files=[tmp_path / "b1", tmp_path / "not there"])
    before = watched.signs()
    assert watched.signs() == before
    (tmp_path / "b1" / "journal").write_bytes(b"x")
    assert watched.signs() != before
    assert grown([tmp_path / "b1"]) == 2


def test_the_processor_time_of_a_process_and_its_children_is_seen() -> None:
    spin = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True)\\nwhile True: pass'])"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = cpu_seconds(process.pid)
        until(lambda: cpu_seconds(process.pid) > before + 0.05, "processor time")
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        subprocess.run(["kill", "-9", child], check=True)
        process.wait()
    assert cpu_seconds(process.pid) == 0.0


def test_the_time_that_looks_take_counts_unless_the_waiter_stood_still() -> None:
    wait = waiting._Wait(ProgressSource(), "it", 30.0)
    assert wait.meant(3.0) == pytest.approx(3.0)
    assert wait._meant_s == pytest.approx(6.0)
    wait.is_over(0.0)
    assert wait._meant_s == 0.0
    wait.meant(3600.0)
    assert wait._meant_s == pytest.approx(LOOK_LONGEST_S * (1 + stretch()))


def test_looks_leave_the_machine_to_those_who_start() -> None:
    assert pause_s(0.0) == pytest.approx(0.02)
    assert pause_s(0.05) == pytest.approx(0.5)
    assert pause_s(4.0) == pytest.approx(4.0)
    assert pause_s(3600.0) == LOOK_LONGEST_S, "it stood still"
