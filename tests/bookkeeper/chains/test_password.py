"""A log's password is as long as nobody can guess, and another one for each log."""

from __future__ import annotations

import pytest

from bookkeeper.chains.password import PASSWORD_BYTES, new_password
from bookkeeper.real import system_seams


@pytest.mark.rule("X18")
def test_every_password_is_32_random_bytes() -> None:
    rng = system_seams().rng
    made = {new_password(rng) for _ in range(50)}
    assert {len(password) for password in made} == {PASSWORD_BYTES} and len(made) == 50
