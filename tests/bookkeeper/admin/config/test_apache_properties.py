"""The text of ``bk_server.conf``."""

from __future__ import annotations

import pytest

from bookkeeper.admin.config.apache_properties import parse_properties
from bookkeeper.errors import ConfigError


def test_settings_comments_and_lines_that_go_on() -> None:
    text = "# a comment\n! another\n\nbookiePort=3181\n zkServers : a:1,\\\n   b:2\nadvertisedAddress=\nuri=zk://h:1/a?b=c\n"
    assert parse_properties(text) == {
        "bookiePort": "3181",
        "zkServers": "a:1,b:2",
        "advertisedAddress": "",
        "uri": "zk://h:1/a?b=c",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=1\nbookiePort 3181\n", "line 2 is no setting"),
        ("a=1\n\n=2\n", "line 3 has no name"),
        ("a=1\nb=2\na=3\n", "a is there twice, in lines 1 and 3"),
        ("include = other.conf\n", "line 1 includes other.conf"),
        ("a=${home}/x\n", "a refers to another value"),
        ("a=1,\\\n", "ends with a backslash"),
    ],
)
def test_what_would_be_read_otherwise_there_is_refused_by_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("$", "\\$")):
        parse_properties(text)
