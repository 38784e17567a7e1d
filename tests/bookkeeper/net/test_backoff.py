from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.net.backoff import Backoff


def test_delays_grow_to_a_limit_and_chance_only_shortens_them() -> None:
    delays = list(islice(Backoff(first_s=1, max_s=10, factor=2, jitter=0).delays(Random(0)), 6))
    assert delays == [1, 2, 4, 8, 10, 10]
    for plain, drawn in zip(delays, Backoff(first_s=1, max_s=10, jitter=0.5).delays(Random(0)), strict=False):
        assert plain / 2 <= drawn <= plain


@pytest.mark.parametrize("bad", [{"first_s": 0.0}, {"first_s": 9.0}, {"factor": 0.5}, {"jitter": 1.0}])
def test_settings_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Backoff(**bad)
