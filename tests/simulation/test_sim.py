"""The command: what it prints, and its exit status."""

from __future__ import annotations

import gc
import runpy
import sys

import pytest

from tests.simulation.sim import main, run_seed, run_seeds


def test_a_seed_without_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--counts", "--events", "5"]) == 0
    out = capsys.readouterr().out
    assert "nothing was found" in out
    assert "acks" in out
    assert "trace " in out


def test_many_seeds_end_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "5"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds, 0 failed; ")


def test_a_failure_prints_the_seed_what_it_was_and_how_to_replay_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "20", "--bug", "fence-ignored"]) == 0, "with a planted bug, success is to find it"
    out = capsys.readouterr().out
    assert "B3" in out
    assert "replay: python -m tests.simulation --seed" in out
    assert "--bug fence-ignored" in out


def test_the_room_is_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sim", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("tests.simulation", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: python -m tests.simulation ")


def test_what_a_world_changed_is_as_before() -> None:
    before = (sys.unraisablehook, gc.isenabled())
    results = list(run_seeds([7], None, 1))
    assert [result.seed for result in results] == [7]
    assert (sys.unraisablehook, gc.isenabled()) == before
    assert run_seed(7).digest == results[0].digest
