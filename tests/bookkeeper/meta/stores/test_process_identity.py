from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.meta.stores import process_identity
from bookkeeper.meta.stores.process_identity import ProcessIdentity, _stat, is_dead, network_file_system, this_process


def identity(pid: int) -> ProcessIdentity:
    found = _stat(pid)
    assert found is not None
    return replace(this_process(), pid=pid, started=found[1])


def test_we_are_alive() -> None:
    assert not is_dead(this_process(), this_process())


def test_a_killed_process_is_dead_before_and_after_it_was_waited_for() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = identity(child.pid)
    assert not is_dead(process, this_process())
    child.kill()
    while not is_dead(process, this_process()):
        pass
    child.wait()
    assert is_dead(process, this_process())
    assert child.stdin is not None
    child.stdin.close()


def test_a_process_that_proc_does_not_show_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted with ``hidepid``, /proc hides other users' processes: the owner of a lease seemed to be dead."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = identity(child.pid)
    monkeypatch.setattr(process_identity, "_stat", lambda pid: None)
    assert not is_dead(process, this_process_as_seen(process))
    child.kill()
    child.wait()
    assert is_dead(process, this_process_as_seen(process)), "its number is free"
    assert child.stdin is not None
    child.stdin.close()


def this_process_as_seen(by: ProcessIdentity) -> ProcessIdentity:
    """Us, on the machine and in the namespace of another process."""
    return replace(by, pid=0, started=0)


def test_another_process_with_the_same_number_is_another() -> None:
    here = this_process()
    assert is_dead(replace(here, started=here.started - 1), here)


def test_before_the_machine_started_anew_everybody_died() -> None:
    here = this_process()
    assert is_dead(replace(here, boot="another"), here)


def test_a_process_of_another_namespace_cannot_be_told() -> None:
    here = this_process()
    assert not is_dead(replace(here, namespace="pid:[1]", pid=1, started=0), here)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/share rw,relatime shared:2 - nfs4 server:/x rw
31 30 8:2 / /mnt/share/local rw - xfs /dev/sdb1 rw
32 22 0:41 / /mnt/my\\040disk rw - cifs //server/x rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", None),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/shared", None),
        ("/mnt/share/local/a", None),
        ("/mnt/my disk/a", "cifs"),
    ],
)
def test_network_file_systems_are_told_by_their_mount(path: str, kind: str | None, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert network_file_system(path, str(mounts)) == kind


def test_where_nothing_can_be_told_nothing_is_refused(tmp_path: Path) -> None:
    assert network_file_system("/mnt/share", str(tmp_path / "none")) is None
