"""A journal's address: what stands in it is meant as it is, and told without the values of options."""

from __future__ import annotations

import pytest

from journal_manager.errors import JournalConfigError
from journal_manager.journals.journal_uri import JournalURI, parse_uri


def test_an_address_is_taken_apart_and_shown_without_its_options() -> None:
    uri = parse_uri("bk://a/b%20c?password=p&x=1")
    assert uri == JournalURI("bk", "a", "/b c", {"password": "p", "x": "1"})
    assert (uri.name, str(uri)) == ("a/b c", "bk://a/b c")
    assert "password" not in repr(uri)


@pytest.mark.parametrize(
    "text",
    ["edits", "bk:a#b", "bk:a?x", "bk:a?x=1&x=2", "bk:a%zz", "bk:a%ff", "9bk:a", "bk:a?password=geheim&password=2"],
)
def test_what_is_no_address_is_refused_without_telling_a_password(text: str) -> None:
    with pytest.raises(JournalConfigError) as caught:
        parse_uri(text)
    assert "geheim" not in str(caught.value)
