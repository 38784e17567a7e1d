from __future__ import annotations

from segments.chain import COMPONENT_TAGS, ledger_tags, stream_tags


def test_a_ledger_names_application_component_stream_and_epoch() -> None:
    """SEG-55 ledger custom metadata names application, component and stream"""
    assert ledger_tags("abc", 7) == {
        "application": b"bookkeeper-py",
        "component": b"segments",
        "stream": b"abc",
        "epoch": b"7",
    }
    assert stream_tags("abc").items() <= ledger_tags("abc", 7).items()
    assert COMPONENT_TAGS.items() <= stream_tags("abc").items()
