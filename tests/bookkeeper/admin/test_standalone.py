"""The parent of a cluster: what it relays, and what it answers when children end. (As a command: test_servers.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bookkeeper.admin.standalone import Plan

PROGRAM = """
import sys
from pathlib import Path
from bookkeeper.admin.standalone import Plan, Standalone
from bookkeeper.errors import ConfigError

class Family(Standalone):
    def _init(self):
        {init}

    def _bookie(self, name):
        {bookie}

plan = Plan(Path(sys.argv[1]), bookies=2, webhdfs_port={port}, command_group="no.such.group")
raise SystemExit(Family(plan).run())
"""


def family(directory: Path, *, init: str = "return 0", bookie: str, port: int | None = None) -> tuple[int, str, str]:
    """Run a family whose members do this; its status, output and complaints."""
    script = PROGRAM.format(init=init, bookie=bookie, port=port)
    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_plan_says_where_the_metadata_are() -> None:
    plan = Plan(Path("/data"), bookies=3, webhdfs_port=None, command_group="g")
    assert plan.metadata == "sqlite:///data/metadata.db"


def test_whole_lines_are_relayed_with_the_name_of_who_said_them(tmp_path: Path) -> None:
    say = "print(name, 'says one'); print('and two', end=''); sys.stdout.flush(); print(); return 0"
    status, out, err = family(tmp_path / "new", bookie=say)
    assert sorted(out.splitlines()) == [
        "b1       and two",
        "b1       b1 says one",
        "b2       and two",
        "b2       b2 says one",
    ]
    assert (status, (tmp_path / "new").is_dir()) == (1, True), "bookies that end by themselves are a failure"
    assert err.count("the others go on") == 2


def test_it_is_ready_when_all_of_them_serve(tmp_path: Path) -> None:
    _, out, _ = family(tmp_path, bookie="print('serves') if name == 'b1' else 0; return 0")
    assert "ready after" not in out
    _, out, _ = family(tmp_path, bookie="print('this serves'); return 0")
    assert f"export BK_METADATA=sqlite://{tmp_path}/metadata.db" in out


def test_nothing_is_started_if_the_cluster_cannot_be_made(tmp_path: Path) -> None:
    status, out, err = family(tmp_path, init="raise ConfigError('no good')", bookie="print('started'); return 0")
    assert (status, out) == (1, "init     error: no good\n")
    assert "init" in err


def test_without_the_gateway_s_package_the_bookies_are_started_and_it_is_said(tmp_path: Path) -> None:
    _, out, _ = family(tmp_path, bookie="print(name); return 0", port=9870)
    assert "no gateway: the package spark_wal is not installed" in out
    assert "b2" in out
