"""Sizes that no log could have are refused when they are set."""

from __future__ import annotations

from typing import Any

import pytest

from journal_manager.write.edit_log_config import EditLogConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_batch_bytes": 0},
        {"max_pending_bytes": 0},
        {"segment_bytes": 0},
        {"segment_edits": 0},
        {"max_transmitted": 0},
        {"segment_s": 0.0},
    ],
)
def test_a_size_or_a_time_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|above 0"):
        EditLogConfig(**wrong)


def test_what_is_not_set_is_allowed() -> None:
    assert EditLogConfig(segment_s=None, transmit_bytes=None).max_transmitted >= 1
