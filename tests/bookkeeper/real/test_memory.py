from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper.real import memory_limit, names_secrets

FAULTS = """
import resource
from bookkeeper.real import keep_freed_memory
{call}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def take():
    parts = [bytearray(3_000_000) for _ in range(3)]
take()
before = faults()
for _ in range(20):
    take()
print(faults() - before)
"""


def page_faults(call: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS.format(call=call)], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_buffers_are_taken_again_without_page_faults() -> None:
    """In a process of its own: it is a setting of the whole process."""
    assert page_faults("assert keep_freed_memory()") < page_faults("") / 10


SCATTERED = """
import os
from pathlib import Path
from bookkeeper.real import give_back_freed_memory, keep_freed_memory
assert keep_freed_memory()
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
taken = [(b"1" * 60_000, b"2" * 600) for _ in range(2000)]
kept = [small for large, small in taken]
del taken
print(resident() - before)
assert give_back_freed_memory()
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a function of glibc")
def test_freed_memory_goes_back_to_the_system_also_from_between_what_is_used() -> None:
    """The C library gives back only what is free at the end of its memory: of thousands of buffers that were freed a
    few small things behind them kept everything."""
    done = subprocess.run([sys.executable, "-c", SCATTERED], stdout=subprocess.PIPE, check=True)
    freed, given_back = map(int, done.stdout.split())
    assert freed > 30_000_000, "it is not the C library that gives it back"
    assert given_back < freed / 3


DUMPABLE = """
import ctypes, resource
from bookkeeper.real import no_core_dumps
no_core_dumps()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.rule("X60")
@pytest.mark.skipif(sys.platform != "linux", reason="a setting of Linux")
def test_a_process_with_keys_leaves_no_core_file() -> None:
    """In a process of its own: it cannot be taken back."""
    done = subprocess.run([sys.executable, "-c", DUMPABLE], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"0 0 0\n"


@pytest.mark.rule("X60")
def test_a_process_whose_environment_names_secrets_is_told_from_one_without() -> None:
    assert not names_secrets({"PATH": "/bin", "BK_METADATA": "zk://h/l", "BK_PASSWORD": ""})
    for name in ("BK_PASSWORD", "BK_TLS_KEY", "BK_GATEWAY_TOKEN_FILE", "BK_ZOOKEEPER", "BK_ZOOKEEPER_PASSWORD"):
        assert names_secrets({name: "x"})


def test_the_narrowest_limit_of_memory_counts(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    assert memory_limit(proc, groups) is None
    (proc / "meminfo").write_text("MemTotal:        1000 kB\nMemFree:  10 kB\n")
    assert memory_limit(proc, groups) == 1_024_000
    (groups / "a" / "b").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/a/b\n")
    (groups / "a" / "b" / "memory.max").write_text("max\n")
    (groups / "a" / "memory.max").write_text("4096\n")
    assert memory_limit(proc, groups) == 4096, "that of a group above counts, too"
    (groups / "memory" / "c").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("4:cpu:/a/b\n3:memory:/c\n")
    assert memory_limit(proc, groups) == 1_024_000
    (groups / "memory" / "c" / "memory.limit_in_bytes").write_text("8192\n")
    assert memory_limit(proc, groups) == 8192
    assert memory_limit() is not None
