from __future__ import annotations

import pytest

from tests.environment.progress import pip_state

LOG = """\
Collecting click>=8.4 (from bookkeeper-py)
  Downloading click-8.5.1-py3-none-any.whl (126 kB)
Collecting pyspark==4.3.0
  Downloading pyspark-4.3.0.tar.gz (455.9 MB)
"""


@pytest.mark.parametrize(
    ("more", "there", "told"),
    [
        ("", 0, "fetches pyspark-4.3.0.tar.gz (0 of 456 MB; 1 files, 0 MB before)"),
        ("", 200_000_000, "fetches pyspark-4.3.0.tar.gz (200 of 456 MB; 1 files, 0 MB before)"),
        ("", 10**12, "fetches pyspark-4.3.0.tar.gz (456 of 456 MB; 1 files, 0 MB before)"),
        ("  Downloading other-1.whl\n", 0, "fetches other-1.whl (0 of 0 MB; 2 files, 456 MB before)"),
        ("  Building wheel for pyspark (pyproject.toml): started\n", 0, "builds pyspark"),
        ("  Building wheel for a (x): started\n  Building wheel for a (x): finished\n", 0, "looks up packages"),
        ("Processing ./built/pyspark-4.3.0-py2.py3-none-any.whl\n", 0, "reads pyspark-4.3.0-py2.py3-none-any.whl"),
        ("  Preparing editable metadata (pyproject.toml): started\n", 0, "prepares the package"),
        ("Collecting x\n", 0, "looks up packages"),
        ("Installing collected packages: a, b, c\n", 0, "installs 3 packages"),
    ],
)
def test_who_waits_is_told_what_is_fetched_or_built_and_of_how_many_megabytes(more: str, there: int, told: str) -> None:
    assert pip_state(LOG + more).told(there) == told


def test_a_pip_that_has_said_nothing_looks_up_packages() -> None:
    assert pip_state("").told() == "looks up packages"
