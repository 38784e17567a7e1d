"""What an operator may set of the gateway's tree, uploads and owner."""

from __future__ import annotations

import math

import pytest

from bookkeeper.errors import ConfigError
from spark_wal.webhdfs.config import GROWING, KEEP_S, OwnerConfig, UploadLimits


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
def test_temporary_files_stay_for_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ConfigError, match="temporary file"):
        OwnerConfig(temporary_keep_s=seconds)
    assert OwnerConfig(temporary_keep_s=0).temporary_keep_s == 0
    assert OwnerConfig().temporary_keep_s == KEEP_S


def test_patterns_of_files_that_grow_are_checked() -> None:
    for wrong in ("", "a//b", "**"):
        with pytest.raises(ConfigError, match="the pattern"):
            OwnerConfig(growing=(wrong,))
    assert OwnerConfig().growing == GROWING
    assert OwnerConfig(growing=()).growing == ()
    with pytest.raises(ConfigError, match="growing_sync_s"):
        OwnerConfig(growing_sync_s=0)


def test_a_file_may_have_bytes() -> None:
    with pytest.raises(ConfigError, match="file_bytes_max"):
        UploadLimits(file_bytes_max=0)


def test_an_inline_file_fits_into_a_record_and_is_no_spilled_one() -> None:
    limits, owner = UploadLimits(), OwnerConfig()
    assert limits.inline_size < limits.spill_size < limits.budget
    assert limits.inline_size < owner.record_bytes_max
