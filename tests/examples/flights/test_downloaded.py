"""How much pip says it has downloaded."""

from __future__ import annotations

import pytest

from examples.flights.downloaded import megabytes

LOG = """\
Collecting pyspark==4.3.0
  Downloading pyspark-4.3.0.tar.gz (455.2 MB)
Collecting click
  Downloading click-8.3.0-py3-none-any.whl (107 kB)
  Downloading click-8.3.0-py3-none-any.whl.metadata (2.6 kB)
Collecting rich
  Using cached rich-14.0.0-py3-none-any.whl (243 kB)
  Downloading tiny-1.0-py3-none-any.whl
  Downloading huge-1.0.whl (1.5 GB)
"""


def test_sizes_are_summed_and_what_was_cached_counts_nothing() -> None:
    assert megabytes(LOG) == pytest.approx(455.2 + 0.107 + 0.0026 + 1500)


def test_an_empty_log_is_nothing() -> None:
    assert megabytes("") == 0
