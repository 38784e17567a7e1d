from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
from bookkeeper.real import allow_descriptors
assert allow_descriptors() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
assert allow_descriptors() == hard
"""


@pytest.mark.rule("K28")
def test_the_low_limit_that_a_process_begins_with_is_raised() -> None:
    """In a process of its own: it is a setting of the whole process."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
