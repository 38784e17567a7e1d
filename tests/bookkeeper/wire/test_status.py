"""Outcomes: their numbers in both dialects, their errors, and back."""

from __future__ import annotations

import pytest

from bookkeeper import errors
from bookkeeper.wire.status import ERRORS, FROM_V2, FROM_V3, TO_V2, TO_V3, WORDS, Status, error_of, status_of


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_number_of_its_own_in_both_dialects(status: Status) -> None:
    assert FROM_V2[TO_V2[status]] is status
    assert FROM_V3[TO_V3[status]] is status


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_an_error_travels_as_its_status_and_comes_back_as_itself(status: Status) -> None:
    error = error_of(status)
    assert type(error) is ERRORS[status]
    assert status_of(error) is status
    assert str(error) == WORDS[status]
    assert str(error_of(status, "read of entry 3 on b1")) == f"read of entry 3 on b1: {WORDS[status]}"
    assert status.name not in str(error), "people read words"


def test_ok_is_no_error() -> None:
    with pytest.raises(KeyError):
        error_of(Status.OK)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.DiskFullError(), Status.READ_ONLY),
        (errors.CorruptionError(), Status.IO_ERROR),
        (errors.DigestMismatchError(), Status.IO_ERROR),
        (errors.StorageError(), Status.IO_ERROR),
        (OSError(5, "Input/output error"), Status.IO_ERROR),
        (errors.InvariantError(), Status.BAD_REQUEST),
        (ValueError(), Status.BAD_REQUEST),
    ],
)
def test_what_ended_a_request_on_the_bookie_has_a_status(error: BaseException, status: Status) -> None:
    assert status_of(error) is status
