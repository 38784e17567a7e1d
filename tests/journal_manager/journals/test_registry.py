"""Schemes, addresses, options."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Literal

import pytest

from journal_manager import JournalConfigError, UnknownSchemeError, backend_for, installed_backends, parse_uri
from journal_manager.journals import registry
from journal_manager.journals.registry import ENTRY_POINT_GROUP, parse_options


def test_the_built_in_backends_are_entry_points() -> None:
    schemes = {"mem", "file", "bk", "bk+embedded", "bk+sqlite", "bk+zk"}
    assert schemes <= set(installed_backends())
    for scheme in sorted(schemes):
        assert backend_for(parse_uri(f"{scheme}:x")).format is not None


def test_everything_that_is_installed_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_backends() and backend_for(parse_uri("mem:x"))
    monkeypatch.setattr(registry, "entry_points", lambda group: pytest.fail(f"looks for {group} again"))
    assert installed_backends() and backend_for(parse_uri("mem:x"))


def test_an_unknown_scheme_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownSchemeError, match=r"no backend is installed for ftp: journals; installed are .*file.*mem"
    ):
        backend_for(parse_uri("ftp://x/y"))


def install(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    found = tuple(EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in points)
    monkeypatch.setattr(registry, "declared_backends", lambda: found)


def test_a_backend_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        monkeypatch, ("a", "no_such_module:Backend"), ("b", "journal_manager.journals.backend:NamespaceInfo.no_such")
    )
    for scheme, cause in (("a", ModuleNotFoundError), ("b", AttributeError)):
        with pytest.raises(JournalConfigError, match="cannot be loaded") as caught:
            backend_for(parse_uri(f"{scheme}:x"))
        assert isinstance(caught.value.__cause__, cause)


def test_two_packages_may_not_claim_one_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ("a", "one:Backend"), ("a", "one:Backend"))
    assert set(installed_backends()) == {"a"}
    install(monkeypatch, ("a", "one:Backend"), ("a", "two:Backend"))
    with pytest.raises(JournalConfigError, match="one:Backend and two:Backend"):
        installed_backends()


@pytest.mark.parametrize(
    ("text", "scheme", "name", "query"),
    [
        ("bk:edits", "bk", "edits", {}),
        ("bk:///a/b?ensemble=3&digest=crc32", "bk", "a/b", {"ensemble": "3", "digest": "crc32"}),
        ("bk://a/b", "bk", "a/b", {}),
        ("file:///data/with%20space/", "file", "data/with space", {}),
        ("mem:x?empty=", "mem", "x", {"empty": ""}),
    ],
)
def test_addresses(text: str, scheme: str, name: str, query: dict[str, str]) -> None:
    uri = parse_uri(text)
    assert (uri.scheme, uri.name, dict(uri.query)) == (scheme, name, query)


@pytest.mark.parametrize("text", ["edits", "/data/edits", "mem:x#part", "mem:x?a=1&a=2", "mem:x?novalue", ""])
def test_no_addresses(text: str) -> None:
    with pytest.raises(JournalConfigError):
        parse_uri(text)


@dataclass(frozen=True)
class Sample:
    number: int = 1
    share: float = 0.5
    text: str | None = None
    raw: bytes = b""
    flag: bool = False
    choice: Literal["a", "b"] = "a"
    thing: object = None


def test_options_come_from_the_address_and_then_from_arguments() -> None:
    uri = parse_uri("x:y?number=2&share=1.5&text=t&raw=r&flag=true&choice=b")
    assert parse_options(Sample, uri, {}) == Sample(2, 1.5, "t", b"r", True, "b")
    assert parse_options(Sample, uri, {"number": 7, "thing": uri}).number == 7


@pytest.mark.parametrize("query", ["number=x", "flag=maybe", "choice=c", "thing=1", "share="])
def test_a_value_of_another_type_is_refused(query: str) -> None:
    with pytest.raises(JournalConfigError, match=r"no value of this option|cannot be given in an address"):
        parse_options(Sample, parse_uri(f"x:y?{query}"), {})


def test_an_unknown_option_lists_the_known_ones() -> None:
    for uri, options in (("x:y?colour=1", {}), ("x:y", {"colour": 1})):
        with pytest.raises(
            JournalConfigError, match=r"'colour' is no option of x: journals; the options are number, share"
        ):
            parse_options(Sample, parse_uri(uri), options)


def test_a_misspelt_option_of_an_address_is_answered_with_those_that_an_address_may_have() -> None:
    with pytest.raises(JournalConfigError) as raised:
        parse_options(Sample, parse_uri("x:y?nam=1"), {}, also=("name",))
    assert str(raised.value).endswith("the options are name, number, share, text, raw, flag, choice")
    with pytest.raises(JournalConfigError, match=r"choice, thing$"):
        parse_options(Sample, parse_uri("x:y"), {"nam": 1})


@pytest.mark.parametrize(
    "text", ["file:///tmp/a%zz", "file:///tmp/a%", "file:///tmp/a%ff", "mem://a%2/b", None, 5, b"m:a"]
)
def test_a_wrong_escape_and_what_is_no_text_are_refused(text: Any) -> None:
    """Cause: a wrong escape was taken as it stood, so that a misspelt address was that of another, empty journal; what
    is no text raised an error of the library that takes addresses apart."""
    with pytest.raises(JournalConfigError, match=r"write %25 for a %|address is a text such as"):
        parse_uri(text)
