"""Whether the process that made a session still runs, as the kernel of the common machine says."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies one process for ever, also across restarts of the machine."""

    boot: str
    """The kernel's id of this run of the machine."""
    namespace: str
    """The namespace of process ids; ids of another namespace cannot be looked up."""
    pid: int
    started: int
    """Clock ticks between the machine's start and the process's."""


def this_process() -> ProcessIdentity:
    """The identity of this process."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    pid = os.getpid()
    found = _stat(pid)
    assert found is not None
    return ProcessIdentity(boot, os.readlink("/proc/self/ns/pid"), pid, found[1])


def is_dead(process: ProcessIdentity, here: ProcessIdentity) -> bool:
    """Whether the process has certainly ended. False if that is not known."""
    if process.boot != here.boot:
        return True
    if process.namespace != here.namespace:
        return False
    found = _stat(process.pid)
    if found is None:
        return _is_free(process.pid)
    return found[0] in "ZXx" or found[1] != process.started


def _is_free(pid: int) -> bool:
    """Whether no process has this number. Where /proc hides other users' processes (``hidepid``), it does not show one
    that is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _stat(pid: int) -> tuple[str, int] | None:
    """State and start time of a process; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0].decode(), int(fields[19])


_NETWORK = frozenset(
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "ocfs2", "gfs2", "glusterfs", "beegfs"]
    + [f"fuse.{name}" for name in ("sshfs", "glusterfs", "cephfs", "s3fs", "rclone", "gcsfuse")]
)


def network_file_system(path: str, mounts: str = "/proc/self/mountinfo") -> str | None:
    """The type of the network file system that holds ``path``; None for a local one, or if it is not known."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind if kind in _NETWORK else None
