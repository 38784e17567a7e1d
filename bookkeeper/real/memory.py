"""Settings of the whole process about its memory: what becomes of what was freed, and of what is secret."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MMAP_THRESHOLD: Final = 32 * 1024 * 1024
_TRIM_THRESHOLD: Final = 64 * 1024 * 1024
_PR_SET_DUMPABLE: Final = 4


def keep_freed_memory() -> bool:
    """Let this process keep up to 64 MiB of freed memory instead of giving each large buffer back at once.

    A server takes and frees buffers of a megabyte all the time; given back and taken again, each costs 256 page faults,
    several times what filling it costs. Only for a process of our own: it is a setting of the whole process.

    Returns:
        whether the C library knows such a setting (glibc does).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)) and bool(mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD))


def give_back_freed_memory() -> bool:
    """Return what was freed to the system, also where it lies between memory that is in use.

    Returns:
        whether the C library can (glibc does), and there was some.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return False
    return bool(trim(0))


def memory_limit(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How much memory this process may use, in bytes: what the machine has, or less if a control group around the
    process (a container's, a service's) has a limit. None if the system does not say."""
    found = [int(words[1]) * 1024 for words in _words(proc / "meminfo") if words[0] == "MemTotal:"]
    for line in _words(proc / "self/cgroup"):
        _, controllers, path = "".join(line).split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
        directory = root / path.lstrip("/")
        for each in (directory, *directory.parents):
            found += [int(words[0]) for words in _words(each / name) if words[0].isdigit()]
            if each == root:
                break
    return min(found, default=None)


def _words(path: Path) -> list[list[str]]:
    try:
        return [line.split() for line in path.read_text().splitlines() if line.strip()]
    except OSError:
        return []


SECRETS: Final = frozenset(
    {
        "BK_AUTH_FILE",
        "BK_ENCRYPTION_KEYS",
        "BK_ENCRYPTION_KEY_FILE",
        "BK_GATEWAY_TOKEN_FILE",
        "BK_PASSWORD",
        "BK_SASL_PASSWORD",
        "BK_TLS_CERT",
        "BK_TLS_KEY",
        "BK_TOKEN",
        "BK_ZOOKEEPER",
        "BK_ZOOKEEPER_PASSWORD",
    }
)
"""Variables of the environment that hold a secret, or name a file with one."""


def names_secrets(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment will have keys, tokens or passwords in its memory."""
    return any(environment.get(name) for name in SECRETS)


def no_core_dumps() -> None:
    """Keep this process's memory, with the private keys in it, out of core files, also of those that the kernel hands
    to a program. On Linux it also keeps other processes of the same user from reading it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
