"""No dataclass shows a key, password or token in its ``repr``: that ends in logs, in errors and in tracebacks."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.architecture.source import names_in

PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal")
SECRET = re.compile(r"passw|secret|credential|(^|_)token$|master_key|^key$", re.IGNORECASE)
SHOWN = {
    ("Record", "key"): "a record's key is data",
    ("RefusalTexts", "no_token"): "a sentence",
    ("RefusalTexts", "bad_token"): "a sentence",
    ("LedgerMetadata", "creator_token"): "a random number that tells one creation from another",
}
"""Fields with such a name that hold no secret, and why."""


def classes() -> Iterator[type[Any]]:
    for package in PACKAGES:
        top = importlib.import_module(package)
        for module in pkgutil.walk_packages(top.__path__, f"{package}."):
            if module.name.endswith("__main__"):
                continue
            for found in names_in(module.name).values():
                if isinstance(found, type) and dataclasses.is_dataclass(found) and found.__module__ == module.name:
                    yield found


def shows(of: type[Any]) -> list[str]:
    """The fields that hold a secret and are shown. Names of files are none, nor is what hides itself."""
    params = of.__dataclass_params__
    if not params.repr:
        return []
    return [
        field.name
        for field in dataclasses.fields(of)
        if field.repr
        and SECRET.search(field.name)
        and re.search(r"\b(bytes|str|bytearray|Any|object)\b", str(field.type))
        and not (field.name == "key" and "bytes" not in str(field.type))  # a path, or the key of a table
        and not field.name.endswith("_file")
        and (of.__name__, field.name) not in SHOWN
    ]


@pytest.mark.rule("X59")
def test_no_dataclass_shows_a_secret() -> None:
    """Cause: keys of gateways, passwords of journals and the tokens of requests were in what ``repr`` shows."""
    assert {f"{of.__module__}.{of.__name__}": found for of in classes() if (found := shows(of))} == {}


def test_what_is_shown_is_found() -> None:
    @dataclasses.dataclass
    class Shows:
        name: str
        password: str
        key: bytes
        hidden_token: bytes = dataclasses.field(default=b"", repr=False)

    assert shows(Shows) == ["password", "key"]


def test_every_exception_is_still_there() -> None:
    there = {(of.__name__, field.name) for of in classes() for field in dataclasses.fields(of)}
    assert set(SHOWN) <= there
