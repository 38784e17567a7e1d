"""What a process says of itself."""

from __future__ import annotations

import pytest

from bookkeeper.autorecovery.report import AutorecoveryReport, StuckRepair
from bookkeeper.errors import MetadataFormatError


def test_a_report_is_read_as_it_was_written() -> None:
    report = AutorecoveryReport(
        "a",
        True,
        "every bookie is here",
        ("ledger 7: copies",),
        1,
        2,
        3,
        4,
        5,
        (StuckRepair(9, "no bookie", 2, 10),),
        1,
        6,
    )
    assert AutorecoveryReport.decode(report.encode()) == report


def test_fields_of_a_later_version_are_left_out() -> None:
    assert AutorecoveryReport.decode(b'{"name": "a", "colour": "blue"}') == AutorecoveryReport("a")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"name": "a", "stuck": [{}]}', b'{"name": "a", "stuck": 3}'])
def test_what_is_no_report_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="cannot be read"):
        AutorecoveryReport.decode(data)
