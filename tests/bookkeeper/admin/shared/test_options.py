"""What verbs share."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bookkeeper.admin.shared.options import (
    LedgerIdType,
    chosen_auth,
    chosen_tls,
    connected,
    finish,
    metadata_option,
    print_json,
    print_table,
)
from bookkeeper.amounts import counted, state_in_words
from bookkeeper.auth.config import AuthConfig
from bookkeeper.errors import AddTimeoutError, ConfigError, NoSuchLedgerError
from bookkeeper.ledger.metadata import LedgerState
from bookkeeper.meta import init_cluster
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from tests.bookkeeper.admin.commands import bk


@pytest.mark.parametrize("value", ["-1", "abc", "1.5", ""])
def test_a_ledger_id_is_a_whole_number(value: str) -> None:
    with pytest.raises(click.BadParameter, match="not a ledger id: a ledger id is a whole number from 0 on"):
        LedgerIdType(0).convert(value, None, None)


def test_the_largest_ledger_id_is_one() -> None:
    assert LedgerIdType(0).convert(str(2**63 - 1), None, None) == 2**63 - 1


def test_a_change_whose_outcome_is_unknown_is_noted_and_a_look_is_not() -> None:
    async def work(error: Exception) -> None:
        raise error

    for changes, error, noted in (
        (True, AddTimeoutError("x"), True),
        (False, AddTimeoutError("x"), False),
        (True, NoSuchLedgerError("x"), False),
    ):
        with pytest.raises(type(error)):
            finish(work(error), changes=changes)
        assert bool(getattr(error, "__notes__", ())) == noted


async def test_no_cluster_and_no_store_name_the_address_and_what_to_do(tmp_path: Path) -> None:
    empty = f"sqlite://{tmp_path}/empty.db"
    with pytest.raises(click.ClickException, match=f"no cluster at {empty}: `bk init --metadata {empty}` makes one"):
        async with connected(empty):
            pass
    assert os.listdir(tmp_path) == [], "looking for a cluster makes nothing"
    os.mkdir(tmp_path / "directory")
    away = f"sqlite://{tmp_path}/directory"
    with pytest.raises(click.ClickException, match=f"cannot reach {away}: "):
        async with connected(away):
            pass
    with pytest.raises(ConfigError, match="foo"):
        async with connected("foo://x"):
            pass


async def test_a_cluster_that_is_there_is_connected_to(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    await init_cluster(uri, system_seams())
    async with connected(uri) as client:
        assert [ledger async for ledger in client.list_ledgers()] == []


def test_the_address_may_come_from_the_environment(embedded: str) -> None:
    one = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)
    assert bk("ledger", "append", *one, environment={"BK_METADATA": embedded}).status == 0
    assert bk("bookies", environment={"BK_METADATA": embedded}).status == 0


@pytest.mark.parametrize(
    "words",
    [
        ["bookies"],
        ["bookies", "info"],
        ["bookies", "drain", "b1"],
        ["bookies", "forget", "b1"],
        ["ledger", "list"],
        ["ledger", "read", "0"],
        ["ledger", "tail", "0"],
        ["ledger", "show", "0"],
        ["ledger", "entries", "0"],
        ["ledger", "recover", "0"],
        ["ledger", "delete", "0", "--yes"],
        ["metadata", "show"],
        ["metadata", "audit-acls"],
    ],
    ids=" ".join,
)
def test_who_only_looks_at_a_misspelt_address_makes_no_cluster_there(words: list[str], tmp_path: Path) -> None:
    """Connecting to an ``embedded:`` address makes what is not there: also for verbs that have no use for a new one."""
    bk(*words, "-m", f"embedded://{tmp_path}/misspelt").refused(f"there is no cluster in {tmp_path}/misspelt")
    assert os.listdir(tmp_path) == []


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1, 2], "where": Path("/x")})
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert json.loads(said) == {"a": [1, 2], "where": "/x"}


def test_a_table_shows_lists_side_by_side_and_nothing_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("title", ["first_entry", "absent"], [{"first_entry": 7, "absent": ["b1", "b2"]}, {"first_entry": 9}])
    said = capsys.readouterr().out
    assert "first entry" in said
    assert "b1 b2" in said
    assert "None" not in said


def test_the_items_of_a_tuple_have_a_line_each_and_none_sends_a_control(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("1 row", ["copies"], [{"copies": ("b1 seen", "b2\x1b\n gone")}])
    cells = [line.strip("│ ") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert cells == ["b1 seen", "b2\\x1b\\n gone"]


def test_nouns_are_counted() -> None:
    assert [counted(n, "ledger") for n in (0, 1, 2)] == ["0 ledgers", "1 ledger", "2 ledgers"]
    assert [counted(2, noun) for noun in ("entry", "day")] == ["2 entries", "2 days"]


def _chosen(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    @click.command()
    @metadata_option
    def verb(metadata: str) -> None:
        try:
            click.echo(repr(chosen_tls()))
        except ConfigError as error:
            raise click.ClickException(str(error)) from error

    result = CliRunner().invoke(verb, ["-m", "memory://x", *arguments], env=env)
    return result.exit_code, result.output


@pytest.mark.rule("X2")
def test_a_verb_that_knows_the_cluster_knows_how_to_encrypt() -> None:
    assert _chosen() == (0, "None\n")
    given = ["--tls-ca", "/ca", "--tls-cert", "/cert", "--tls-key", "/key"]
    assert _chosen(*given) == (0, f"{TlsConfig(ca='/ca', cert='/cert', key='/key')}\n")
    assert _chosen("--tls-insecure-any-host", env={"BK_TLS_CA": "/ca"}) == (
        0,
        f"{TlsConfig(ca='/ca', insecure_any_host=True)}\n",
    )
    assert _chosen(env={"BK_TLS_CERT": "/cert"})[0] == 1


ROWS = [
    {"ledger": 1234567890, "state": "closed", "reasons": None, "alone": True},
    {"ledger": 7, "state": "open", "reasons": ["b1", "b2"], "alone": False},
]


def test_a_table_that_fits_breaks_no_word(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "42")  # what the words need, and their frame
    print_table("ledgers", ["ledger", "state", "reasons", "alone"], ROWS)
    shown = capsys.readouterr().out
    assert "│" in shown and all(word in shown for word in ("1234567890", "closed", "reasons", "alone"))


@pytest.mark.parametrize("columns", range(30, 90, 3))
def test_no_table_is_cut_at_the_edge(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [
        {"entries": "0..199", "copies": "b1 seen\nb9 gone", "one_more_failure_loses": "nothing", "why": "word " * 20},
        {
            "entries": "200",
            "copies": "b1 seen",
            "one_more_failure_loses": "34 entries (b2)",
            "why": "/disk1/bookie/log",
        },
    ]
    print_table("ranges", ["entries", "copies", "one_more_failure_loses", "why"], rows)
    lines = capsys.readouterr().out.splitlines()
    framed = [line for line in lines if line.startswith(("┏", "┃", "┡", "│", "└"))]
    assert all(len(line) <= columns and line[-1] in "┓┃┩│┘" for line in framed)
    shown = "".join(lines)
    assert shown.count("word") == 20 and "gone" in shown and "failure" in shown


def test_a_table_that_does_not_fit_is_printed_row_by_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table("ledgers", ["ledger", "state", "reasons", "alone"], ROWS)
    assert capsys.readouterr().out == (
        "ledgers\n"
        "\nledger: 1234567890\nstate: closed\nalone: yes\n"
        "\nledger: 7\nstate: open\nreasons: b1 b2\nalone: no\n"
    )


def test_the_line_above_a_table_is_as_long_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("2 ledgers that the metadata do not know", ["ledger"], [{"ledger": 3}, {"ledger": 5}])
    assert capsys.readouterr().out.startswith("2 ledgers that the metadata do not know\n┏")


def test_a_table_without_rows_is_a_title_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("0 ledgers", ["ledger", "state"], [])
    print_table("segments", ["first", "last"], [])
    assert capsys.readouterr().out == "0 ledgers\nsegments: none\n"


def test_a_state_is_said_in_lower_case_without_underlines() -> None:
    assert [state_in_words(state.name) for state in LedgerState] == ["open", "in recovery", "closed"]


def test_what_others_have_written_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    notes = ["[see case 7]", ":warning:", "[/closed]"]
    print_table("[notes]", ["note"], [{"note": note} for note in notes])
    shown = capsys.readouterr().out
    assert all(note in shown for note in ("[notes]", *notes))


async def test_how_long_a_session_lasts_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    await init_cluster(uri, system_seams())
    monkeypatch.setenv("BK_METADATA_SESSION", "80")
    async with connected(uri) as client:
        assert client.services.config.metadata_session_ms == 80_000
    for wrong in ("long", "inf"):
        monkeypatch.setenv("BK_METADATA_SESSION", wrong)
        with pytest.raises(ConfigError, match="BK_METADATA_SESSION in the environment is a number of seconds"):
            async with connected(uri):
                pass


@pytest.mark.rule("X58")
def test_a_verb_that_knows_the_cluster_knows_how_to_authenticate(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BK_AUTH", "BK_AUTH_FILE", "BK_AUTH_REQUIRED"):
        monkeypatch.delenv(name, raising=False)

    def chosen(*arguments: str, env: dict[str, str] | None = None) -> AuthConfig | str | None:
        found: list[AuthConfig | None] = []

        @click.command()
        @metadata_option
        def verb(metadata: str) -> None:
            try:
                found.append(chosen_auth())
            except ConfigError as error:
                raise click.ClickException(str(error)) from error

        result = CliRunner().invoke(verb, ["-m", "memory://x", *arguments], env=env)
        return found[0] if found else result.output

    assert chosen() is None
    by_file = AuthConfig(provider="token", options={"file": "/t"}, required=True)
    assert chosen("--auth", "token", "--auth-file", "/t", env={"BK_AUTH": "sasl", "BK_AUTH_REQUIRED": "1"}) == by_file
    assert chosen("--auth-file", "/t", env={"BK_AUTH": "token", "BK_AUTH_REQUIRED": "1"}) == by_file
    assert "needs BK_AUTH" in str(chosen("--auth-file", "/t"))
    assert "MODULE:ATTRIBUTE" in str(chosen("--auth", "kerberos"))
