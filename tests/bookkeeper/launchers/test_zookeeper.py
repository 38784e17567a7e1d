from __future__ import annotations

import importlib.util
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.launchers import zookeeper
from bookkeeper.launchers.zookeeper import ZooKeeperServer, class_path, free_port
from tests.bookkeeper.real.places import in_place_of_another
from tests.integration.processes import until

pytestmark = pytest.mark.zookeeper


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux says which ports it gives away")
def test_a_free_port_is_given_to_nobody_else() -> None:
    given_away = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: free_port(), range(400)))
    assert len(set(found)) == 400
    assert all(1024 < port < given_away for port in found)


def test_a_server_serves_stops_and_starts_again_on_its_data(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path, port=free_port())
    for _ in range(2):
        with server:
            until(server._serves)
            assert server.uri == f"zk://127.0.0.1:{server.address.port}/ledgers"
        assert not server._serves()
        data = [path for path in tmp_path.rglob("*") if "version-2" in path.parts]
        assert data and [path for path in data if path.stat().st_mode & 0o077] == [], "ledgers' passwords are in there"
    server.stop()


def test_a_taken_port_is_said_so_also_if_another_zookeeper_has_it(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "first") as first:
        second = ZooKeeperServer(tmp_path / "second", port=first.address.port)
        with pytest.raises(ConfigError, match=f"cannot listen at {first.address}: Address already in use"):
            second.start()
        assert not second.directory.exists()


def test_only_what_the_server_needs_is_on_its_class_path() -> None:
    names = [Path(jar).name for jar in class_path().split(os.pathsep)]
    assert any(name.startswith("zookeeper-jute-") for name in names)
    assert not any("spark" in name or "hadoop" in name for name in names)


def test_without_pyspark_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="PySpark"):
        class_path()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_GET_PDEATHSIG")
@pytest.mark.parametrize("quick", [True, False])
def test_a_command_that_is_tied_to_its_parent_runs_as_it_is_given(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    if not quick:
        monkeypatch.setattr(zookeeper, "_setpriv", lambda: None)
    elif zookeeper._setpriv() is None:
        pytest.skip("no setpriv of util-linux here")
    code = (
        "import ctypes, sys; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value, sys.argv)"
    )
    command = zookeeper.tied_to_parent([sys.executable, "-c", code, "a b", "$x", ""])
    assert (command[0] == sys.executable) is not quick
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=20, check=True)
    assert done.stdout == f"{int(signal.SIGKILL)} ['-c', 'a b', '$x', '']\n"


PARENT = """
import sys
from pathlib import Path
from bookkeeper.launchers.zookeeper import ZooKeeperServer
print(ZooKeeperServer(Path(sys.argv[1])).start().pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    watched = os.pidfd_open(pid)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    ended, _, _ = select.select([watched], [], [], 20)
    os.close(watched)
    assert ended


@pytest.mark.rule("X43")
def test_it_keeps_nothing_in_a_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=in_place_of_another(monkeypatch, tmp_path)):
        ZooKeeperServer(tmp_path).start()
