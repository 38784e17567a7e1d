"""A change that fails is tried every second; the log tells it once."""

from __future__ import annotations

import logging

import pytest

from bookkeeper.client.write.change_log import ChangeLog
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger.write import ChangeFailure

B1, B2 = BookieId("b1"), BookieId("b2")


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="bookkeeper.client.write.change_log")


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in caplog.records]


def test_the_same_failure_is_told_once_and_another_anew(caplog: pytest.LogCaptureFixture) -> None:
    log = ChangeLog(LedgerId(7))
    for failed in ((B1,), (B1,), (B1, B2), (B1,)):
        log.log_failed(failed, ChangeFailure.NO_SPARE)
    log.log_failed((B1,), ChangeFailure.STORE_AWAY)
    assert levels(caplog) == ["WARNING", "DEBUG", "WARNING", "WARNING", "WARNING"]
    assert "ledger 7: failed bookies (b1, b2) are not replaced" in caplog.text


def test_what_ends_the_writer_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    ChangeLog(LedgerId(7)).log_failed((B1,), ChangeFailure.DELETED)
    assert levels(caplog) == ["INFO"]


@pytest.mark.parametrize("by", ["change", "return"])
def test_after_a_success_the_same_failure_is_news(by: str, caplog: pytest.LogCaptureFixture) -> None:
    log = ChangeLog(LedgerId(7))
    log.log_failed((B1,), ChangeFailure.NO_SPARE)
    if by == "change":
        log.log_changed(EntryId(5), (B2, BookieId("b3")), (B1,))
        assert "entries from 5 on are stored by b2, b3, and no more by b1" in caplog.text
    else:
        log.log_returned(B1)
        assert "b1 answers again" in caplog.text
    log.log_failed((B1,), ChangeFailure.NO_SPARE)
    assert levels(caplog) == ["WARNING", "INFO", "WARNING"]
