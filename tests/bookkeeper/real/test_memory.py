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
