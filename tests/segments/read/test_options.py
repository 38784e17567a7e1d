"""Options of a reader that cannot be are refused."""

from __future__ import annotations

from typing import Any

import pytest

from segments.errors import StreamConfigError
from segments.read.options import ReadOptions


@pytest.mark.parametrize(
    "bad", [{"on_gap": "ignore"}, {"read_ahead_bytes": 0}, {"idle_error_s": -1.0}, {"patience_s": 0}, {"look_s": 0}]
)
def test_what_cannot_be_is_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(StreamConfigError, match=next(iter(bad))):
        ReadOptions(**bad)


def test_the_defaults_can_be() -> None:
    assert ReadOptions().on_gap == "raise" and not ReadOptions().follow
