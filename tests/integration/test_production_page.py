"""docs/production.md: its blocks run in one shell, as they stand there; only places are others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from tests.boards.prometheus import find
from tests.integration.processes import end_with_parent
from tests.integration.test_readme import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PAGE = (ROOT / "docs" / "production.md").read_text()
BLOCKS = [textwrap.dedent(code) for code in re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)]

PROMETHEUS = "promtool check config"
WITHOUT_PROMETHEUS = "sleep 600 & echo $! > prometheus.pid"
"""What stands for its block where there is no Prometheus: something to end."""


def test_every_block_is_one_of_commands() -> None:
    assert len(BLOCKS) == 9
    assert len(re.findall(r"```\w*\n", PAGE)) == 2 * len(BLOCKS), "a block that no test runs"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes certificates with openssl")
def test_the_page_runs_from_nothing_to_three_bookies_and_through_their_life(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        monitor = find("prometheus")
        blocks = (
            BLOCKS if monitor is not None else [WITHOUT_PROMETHEUS if PROMETHEUS in each else each for each in BLOCKS]
        )
        script = "\n".join(f"echo '== {at}'\n{code}" for at, code in enumerate(blocks))
        script = f"trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{script}"  # a block that fails leaves no bookie
        elsewhere = {
            "zk://zk1:2181,zk2:2181,zk3:2181/ledgers": f"zk://{server.address}/ledgers",
            "/etc/bk": f"{tmp_path}/etc",
            "/var/": f"{tmp_path}/var/",
            **{port: str(free_port()) for port in ("3181", "8080", "8081", "9090")},
            "/usr/src/bookkeeper-py": str(ROOT),
        }
        assert all(there in PAGE for there in elsewhere)
        # all at once: a port that is put in may look like another one that is looked for
        script = re.sub("|".join(map(re.escape, elsewhere)), lambda found: elsewhere[found[0]], script)
        script = script.replace("[storage]\n", "[storage]\njournal_file_bytes = 8388608\n")  # small ones start fast
        (tmp_path / "page.sh").write_text(script)
        (tmp_path / "var" / "lib").mkdir(parents=True)
        programs = [] if monitor is None else [monitor.parent]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BK_")}
        done = subprocess.run(
            ["bash", "-eu", str(tmp_path / "page.sh")],
            capture_output=True,
            text=True,
            timeout=240 * stretch(),
            check=False,
            env={
                **environment,
                "PATH": ":".join(map(str, (Path(sys.executable).parent, *programs, os.environ["PATH"]))),
            },
            preexec_fn=end_with_parent,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    said = [part.partition("\n")[2] for part in re.split(r"^== ", done.stdout, flags=re.MULTILINE)[1:]]
    assert said[1].count("these settings are good") == 3
    assert "\n998\n999\n1000\n" in said[3], said[3]
    assert "well: nothing is lost, short or stuck" in said[3], said[3]
    assert monitor is None or "SUCCESS" in said[4], said[4]
    assert "compared byte for byte" in said[5]
    assert "yes" in said[6]
    assert "written: new.toml" in said[7]
