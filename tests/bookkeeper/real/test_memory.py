from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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
