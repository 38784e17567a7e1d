from __future__ import annotations

from dataclasses import replace

import pytest

from segments.errors import StreamInvariantError
from tests.segments.chain.pages import folded, long_chain


@pytest.mark.rule("C7")
def test_only_what_changed_is_checked_after_a_step() -> None:
    chain = folded(long_chain(6), 2, 2)
    assert chain.checked() is chain and chain.checked(since=1) is chain
    broken = replace(chain, pages=(replace(chain.pages[0], records=0), chain.pages[1]))
    assert broken.checked(since=1) is broken
    with pytest.raises(StreamInvariantError, match="does not begin where page"):
        broken.checked()
    with pytest.raises(StreamInvariantError, match="counts 19 records"):
        replace(chain, records=19).checked(since=1)
