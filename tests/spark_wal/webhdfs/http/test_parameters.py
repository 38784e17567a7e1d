from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import IllegalArgumentError
from spark_wal.webhdfs.files.records import RenameMode
from spark_wal.webhdfs.http.parameters import DEFAULT_USER, Query


def test_names_have_no_case_the_first_counts_and_empty_is_not_given() -> None:
    query = Query("OP=OPEN&op=CREATE&offset=&user.name=al%2Dice&x=a+b")
    assert query.text("op") == "OPEN"
    assert query.text("offset") is None
    assert query.given("offset")
    assert query.user() == "al-ice"
    assert query.text("x") == "a b"
    assert Query("").user() == DEFAULT_USER


@pytest.mark.parametrize("value", ["true", "TRUE", "True"])
def test_booleans(value: str) -> None:
    assert Query(f"b={value}").boolean("b", False)
    assert not Query("b=false").boolean("b", True)
    assert Query("b=").boolean("b", True)


@pytest.mark.parametrize(
    ("query", "rename"),
    [
        ("", "BARE"),
        ("renameoptions=NONE", "NONE"),
        ("renameoptions=none", "NONE"),
        ("renameoptions=OVERWRITE", "OVERWRITE"),
    ],
)
def test_rename_options(query: str, rename: str) -> None:
    assert Query(query).rename_mode() is RenameMode[rename]


@pytest.mark.parametrize(
    ("query", "ask", "message"),
    [
        ("b=maybe", lambda q: q.boolean("b", False), 'Failed to parse "maybe" to Boolean.'),
        ("n=abc", lambda q: q.long("n", 0, minimum=0), "radix-10 long integer"),
        ("n=-1", lambda q: q.long("n", 0, minimum=0), "Invalid parameter range: n = -1 < 0"),
        ("n=99999999999999999999", lambda q: q.long("n", 0, minimum=0), "radix-10 long integer"),
        ("n=40000", lambda q: q.short("n", 1, minimum=1), "radix-10 short integer"),
        ("permission=999", lambda q: q.permission(0), "radix-8"),
        ("permission=77777", lambda q: q.permission(0), "permission = 77777 > 1777"),
        ("user.name=1$$", lambda q: q.user(), "does not belong to the domain"),
        ("fsaction=read", lambda q: q.action("CHECKACCESS"), "does not belong to the domain"),
        ("", lambda q: q.action("CHECKACCESS"), "Required param fsaction for op: CHECKACCESS"),
        ("destination=x", lambda q: q.destination("RENAME"), "is not an absolute path"),
        ("renameoptions=SOMETHING", lambda q: q.rename_mode(), "No enum constant"),
        ("createflag=create,nonsense", lambda q: q.create_flags(), "org.apache.hadoop.fs.CreateFlag.NONSENSE"),
        ("createflag=CREATE,", lambda q: q.create_flags(), 'webhdfs parameter "createflag": No enum constant'),
    ],
)
def test_what_is_said_about_wrong_ones(query: str, ask: object, message: str) -> None:
    assert callable(ask)
    with pytest.raises(IllegalArgumentError) as caught:
        ask(Query(query))
    assert message in str(caught.value)


@pytest.mark.rule("X30")
def test_a_number_of_any_length_is_refused_in_words() -> None:
    for digits in ("9" * 19, "9" * 5000, "0" * 60_000):
        with pytest.raises(IllegalArgumentError, match="radix-10"):
            Query(f"offset={digits}").long("offset", 0, minimum=0)


def test_bytes_that_are_no_text_can_be_told_again() -> None:
    for value in ("\udc80", "a\udcffb+c", "%ff\udc80"):
        text = Query(f"delegation={value}").text("delegation")
        assert text is not None
        text.encode()


@pytest.mark.parametrize(
    ("query", "flags"),
    [
        ("", set()),
        ("createflag=", set()),
        ("createflag=create,%20Overwrite", {"CREATE", "OVERWRITE"}),
        ("createflag=CREATE%252COVERWRITE", {"CREATE", "OVERWRITE"}),
    ],
)
def test_flags_of_a_create(query: str, flags: set[str]) -> None:
    """HDFS's redirects have them encoded twice."""
    assert Query(query).create_flags() == flags
