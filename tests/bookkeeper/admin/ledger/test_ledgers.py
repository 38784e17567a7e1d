"""``bk ledger``: what a person types, on bookies in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, LedgerMetadata, QuorumSpec
from bookkeeper.admin.ledger.ledgers import describe
from bookkeeper.ids import BookieId
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import bk
from tests.bookkeeper.encryption.keys import NEW, line
from tests.integration.processes import Bookies, Process, until
from tests.integration.processes import bk as run_bk

SMALL = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


@pytest.fixture
def written(cluster: Bookies) -> int:
    """A closed ledger of the lines 1 to 1000, password ``secret``."""
    said = bk("ledger", "append", "-m", cluster.uri, "--password", "secret", stdin=_lines(1000))
    assert said.status == 0, said.err
    return int(said.out)


@pytest.fixture
def left_open(cluster: Bookies) -> int:
    """A ledger whose writer has gone without closing it, entries ``a`` and ``b``: confirmed, and told to all."""

    async def write() -> int:
        async with BookKeeper.connect(cluster.uri) as client:
            ledger = await client.create_ledger(password=b"pw", custom_metadata={"application": b"tests"})
            await ledger.append_many([b"a", b"b"])
            async with await client.open_ledger(ledger.id, b"pw", recovery=False) as reader:
                tailing = reader.tail()
                assert [(await anext(tailing)).payload for _ in range(2)] == [b"a", b"b"]
                await tailing.aclose()  # type: ignore[attr-defined]
            return int(ledger.id)

    return run(write())


def _lines(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, count + 1))


# -- append and read -------------------------------------------------------------------------------------


def test_lines_come_back_as_lines(cluster: Bookies, written: int) -> None:
    read = bk("ledger", "read", written, "-m", cluster.uri, "--password", "secret")
    assert read.out.encode() == _lines(1000)


def test_a_part_is_read_with_first_and_last(cluster: Bookies, written: int) -> None:
    def read(*words: object) -> list[str]:
        said = bk("ledger", "read", written, "-m", cluster.uri, "--password", "secret", *words)
        assert said.status == 0, said.err
        return said.out.split()

    assert read("--first", 997) == ["998", "999", "1000"]
    assert read("--first", 5, "--last", 6) == ["6", "7"]
    assert read("--first", 999, "--last", 999) == ["1000"]
    assert read("--first", 1000) == [], "the end is no mistake"


def test_json_has_a_document_for_each_entry_and_every_byte_can_be_had_back(cluster: Bookies) -> None:
    """Bytes that are no text were escaped in a way that text can look like too, so that none could be had back."""
    said = bk("ledger", "append", "-m", cluster.uri, "--json", stdin=b"text\n\xff\n\nlast without newline")
    document = said.document
    assert document["entries"] == 4
    read = bk("ledger", "read", document["ledger"], "-m", cluster.uri, "--json").out.splitlines()
    assert [json.loads(line) for line in read] == [
        {"entry": 0, "payload": "text", "encoding": "utf-8"},
        {"entry": 1, "payload": "/w==", "encoding": "base64"},
        {"entry": 2, "payload": "", "encoding": "utf-8"},
        {"entry": 3, "payload": "last without newline", "encoding": "utf-8"},
    ]


def test_a_file_may_be_the_source_and_the_password_come_from_the_environment(cluster: Bookies, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"from a file\n")
    environment = {"BK_PASSWORD": "hidden", "BK_METADATA": cluster.uri}
    number = bk("ledger", "append", tmp_path / "source", environment=environment).out.strip()
    assert bk("ledger", "read", number, environment=environment).out == "from a file\n"
    bk("ledger", "read", number, "-m", cluster.uri).refused("password")
    bk("ledger", "append", tmp_path / "none", environment=environment).refused("No such file", status=2)


def test_size_and_count_write_entries_of_zeros_and_nothing_is_a_ledger_too(cluster: Bookies) -> None:
    written = bk("ledger", "append", "-m", cluster.uri, "--size", 10, "--count", 1500, "--json").document
    shown = bk("ledger", "show", written["ledger"], "-m", cluster.uri, "--json").document
    assert (written["entries"], shown["last_entry"], shown["length"]) == (1500, 1499, 15000)
    empty = bk("ledger", "append", "-m", cluster.uri, "--json", stdin=b"").document
    assert empty["entries"] == 0
    assert bk("ledger", "read", empty["ledger"], "-m", cluster.uri).out == ""
    assert "no entries, 0 bytes" in bk("ledger", "show", empty["ledger"], "-m", cluster.uri).out


@pytest.mark.parametrize("digest", ["crc32c", "crc32", "hmac", "dummy"])
def test_every_digest_can_be_asked_for(cluster: Bookies, digest: str) -> None:
    environment = {"BK_METADATA": cluster.uri, "BK_PASSWORD": "pw"}
    also = ["--unsafe-without-digest"] if digest == "dummy" else []
    number = bk(
        "ledger", "append", "--digest", digest, *also, *SMALL, stdin=b"x\n", environment=environment
    ).out.strip()
    assert bk("ledger", "show", number, "-m", cluster.uri, "--json").document["digest"] == digest.upper()
    assert bk("ledger", "read", number, environment=environment).out == "x\n"


@pytest.mark.rule("X19")
def test_a_digest_with_a_key_needs_a_password(cluster: Bookies) -> None:
    said = bk("ledger", "append", "-m", cluster.uri, "--digest", "hmac", *SMALL, stdin=b"x\n")
    said.refused('digest="hmac" needs a password')


@pytest.mark.rule("X19")
def test_tamper_evidence_needs_a_password_and_no_digest_a_flag(cluster: Bookies) -> None:
    given = ("-m", cluster.uri, *SMALL)
    bk("ledger", "append", *given, "--tamper-evident", stdin=b"x\n").refused("tamper_evident=True needs a password")
    bk("ledger", "append", *given, "--digest", "dummy", stdin=b"x\n").refused("checks nothing")
    environment = {"BK_METADATA": cluster.uri, "BK_PASSWORD": "pw"}
    number = bk("ledger", "append", "--tamper-evident", *SMALL, stdin=b"x\n", environment=environment).out.strip()
    assert bk("ledger", "show", number, "-m", cluster.uri, "--json").document["digest"] == "HMAC"


@pytest.mark.rule("X18")
def test_an_operator_reads_a_log_by_the_password_in_its_metadata(cluster: Bookies) -> None:
    """The random password of a stream's or a journal's ledger is known to nobody."""
    environment = {"BK_METADATA": cluster.uri, "BK_PASSWORD": "pw"}
    number = bk("ledger", "append", *SMALL, stdin=b"x\n", environment=environment).out.strip()
    for verb in ("read", "tail"):
        bk("ledger", verb, number, "-m", cluster.uri).refused("the password given is not")
        assert bk("ledger", verb, number, "-m", cluster.uri, "--as-operator").out == "x\n"


@pytest.mark.rule("X24")
def test_keys_in_the_environment_encrypt_what_is_appended(cluster: Bookies, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(line("2026-07", NEW))
    keys.chmod(0o600)
    environment = {"BK_METADATA": cluster.uri, "BK_ENCRYPTION_KEY_FILE": str(keys)}
    number = bk("ledger", "append", *SMALL, stdin=b"secret\n", environment=environment).out.strip()
    shown = bk("ledger", "show", number, "-m", cluster.uri)
    assert '"key_id":"2026-07"' in shown.out
    assert bk("ledger", "read", number, environment=environment).out == "secret\n"
    bk("ledger", "read", number, "-m", cluster.uri).refused("are encrypted, their key is wrapped under key 2026-07")
    assert "secret" not in bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "b1", "--json").out
    keys.chmod(0o644)
    bk("ledger", "read", number, environment=environment).refused("chmod 600")


@pytest.mark.rule("X58")
def test_a_password_comes_from_a_private_file(cluster: Bookies, tmp_path: Path) -> None:
    """Cause: only the environment kept it from the command line, and no page used it."""
    path = tmp_path / "password"
    path.write_text("se cret\n")
    path.chmod(0o600)
    given = ("-m", cluster.uri, "--password-file", path)
    number = bk("ledger", "append", *given, *SMALL, stdin=b"x\n").out.strip()
    assert bk("ledger", "read", number, *given).out == "x\n"
    assert bk("ledger", "read", number, environment={"BK_METADATA": cluster.uri, "BK_PASSWORD": "se cret"}).out == "x\n"
    bk("ledger", "read", number, "-m", cluster.uri).refused("the password given is not", "--password-file")
    loud = bk("ledger", "read", number, "-m", cluster.uri, "--password", "se cret")
    assert (loud.status, loud.out) == (0, "x\n")
    assert "others on this machine can read --password" in loud.err
    assert "--password " not in bk("ledger", "read", "--help").out
    assert bk("ledger", "read", number, *given, "--password", "x").status == 2
    path.chmod(0o644)
    bk("ledger", "read", number, *given).refused("chmod 600")


# -- what cannot be done ----------------------------------------------------------------------------------


def test_a_wrong_password_is_refused_with_how_to_give_one(cluster: Bookies, written: int) -> None:
    for verb in ("read", "tail", "recover"):
        for password in ((), ("--password", "wrong")):
            said = bk("ledger", verb, written, "-m", cluster.uri, *password)
            said.refused(f"the password given is not the password of ledger {written}", "--password-file")


def test_an_unknown_ledger_is_refused(cluster: Bookies) -> None:
    for words in (["read"], ["tail"], ["show"], ["recover"], ["delete", "--yes"]):
        bk("ledger", *words, 777777, "-m", cluster.uri).refused("there is no ledger 777777")


def test_what_is_no_ledger_id_is_refused(cluster: Bookies) -> None:
    bk("ledger", "read", "first", "-m", cluster.uri).refused("'first' is not a ledger id", status=2)


def test_reading_beyond_the_end_says_where_it_is(cluster: Bookies, written: int) -> None:
    password = ("--password", "secret")
    bk("ledger", "read", written, "-m", cluster.uri, *password, "--first", 5, "--last", 2).refused(
        "--last 2 is before --first 5", status=2
    )
    said = bk("ledger", "read", written, "-m", cluster.uri, "--password", "secret", "--first", 1, "--last", 1000)
    said.refused(f"ledger {written} has entries 0..999", "--last 1000")


def test_quorums_that_do_not_fit_are_refused(cluster: Bookies) -> None:
    words = ("--ensemble", 2, "--write-quorum", 3)
    bk("ledger", "append", "-m", cluster.uri, *words, stdin=b"x").refused("ensemble >= write_quorum", "not 2, 3 and 2")


def test_too_few_bookies_names_those_there_are(cluster: Bookies) -> None:
    said = bk("ledger", "append", "-m", cluster.uri, "--ensemble", 4, stdin=b"x")
    said.refused("needs 4 bookies", "3 can be used", "b1", "b2", "b3")


def test_an_entry_that_is_too_large_tells_what_is_there_already(cluster: Bookies) -> None:
    said = bk("ledger", "append", "-m", cluster.uri, *SMALL, stdin=b"x\n" * 512 + b"y" * (6 << 20))
    said.refused("entry_size_max", "512 confirmed entries")


# -- show, list, recover, delete, tail ---------------------------------------------------------------------


def test_show_tells_state_end_quorums_and_who_holds_what(cluster: Bookies, written: int) -> None:
    said = bk("ledger", "show", written, "-m", cluster.uri).out
    assert f"ledger {written}: closed, entries 0..999, 2893 bytes, E=3 Qw=3 Qa=2, CRC32C" in said
    assert "1 fragment" in said
    assert "absent now" not in said
    shown = bk("ledger", "show", written, "-m", cluster.uri, "--json").document
    assert sorted(shown.pop("fragments")[0]["ensemble"]) == ["b1", "b2", "b3"]
    assert shown == {
        "ledger": written,
        "state": "CLOSED",
        "last_entry": 999,
        "length": 2893,
        "ensemble": 3,
        "write_quorum": 3,
        "ack_quorum": 2,
        "digest": "CRC32C",
        "custom": {},
    }


def test_show_of_an_open_ledger_invents_no_end(cluster: Bookies, left_open: int) -> None:
    said = bk("ledger", "show", left_open, "-m", cluster.uri).out
    assert f"ledger {left_open}: open, it is not closed yet" in said
    assert "application = tests" in said
    assert bk("ledger", "show", left_open, "-m", cluster.uri, "--json").document["last_entry"] is None


def test_a_ledger_made_while_a_bookie_is_away_names_it(cluster: Bookies) -> None:
    cluster["b2"].kill()
    try:
        until(lambda: cluster.states()["b2"] == "absent", 30, cluster.states)
        bk("ledger", "append", "-m", cluster.uri, stdin=b"x").refused("needs 3 bookies, but 2 can be used")
        said = bk("ledger", "append", "-m", cluster.uri, "--when-short", "name_absent", stdin=b"x\ny\n")
        assert said.status == 0, said.err
        number = int(said.out)
        fragment = bk("ledger", "show", number, "-m", cluster.uri, "--json").document["fragments"][0]
        assert sorted(fragment["ensemble"]) == ["b1", "b2", "b3"]
        assert fragment["absent"] == ["b2"]
        assert "absent now: b2" in bk("ledger", "show", number, "-m", cluster.uri).out
        assert bk("ledger", "read", number, "-m", cluster.uri).out == "x\ny\n"
    finally:
        cluster.all_up()


def test_fragments_are_shown_with_their_first_entries() -> None:
    b1, b2, b3 = BookieId("b1"), BookieId("b2"), BookieId("b3")
    spec = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=1)
    metadata = LedgerMetadata.create(spec, (b1, b2)).change_ensemble(7, (b1, b3))
    shown = describe(4, metadata, {"b1"})
    assert [(f["first_entry"], f["ensemble"], f["absent"]) for f in shown["fragments"]] == [
        (0, ["b1", "b2"], ["b2"]),
        (7, ["b1", "b3"], ["b3"]),
    ]


def test_list_has_every_ledger_in_order(cluster: Bookies, written: int, left_open: int) -> None:
    rows = bk("ledger", "list", "-m", cluster.uri, "--json").document
    found = {row["ledger"]: row for row in rows}
    assert [row["ledger"] for row in rows] == sorted(found)
    assert found[written] == {"ledger": written, "state": "CLOSED", "last_entry": 999, "length": 2893}
    assert found[left_open]["state"] == "OPEN"
    shown = bk("ledger", "list", "-m", cluster.uri).out
    assert f"{len(rows)} ledgers" in shown
    cells = {
        int(line.split("│")[1]): [cell.strip() for cell in line.split("│")[2:5]] for line in shown.splitlines()[4:-1]
    }
    assert cells[written] == ["closed", "999", "2893"]
    assert cells[left_open] == ["open", "", ""], "how long an open ledger is, its writer knows"


def test_reading_does_not_fence_and_recovery_closes(cluster: Bookies, left_open: int) -> None:
    password = ("-m", cluster.uri, "--password", "pw")
    assert bk("ledger", "read", left_open, *password, "--last", 0).out == "a\n"
    assert bk("ledger", "show", left_open, "-m", cluster.uri, "--json").document["state"] == "OPEN"
    assert bk("ledger", "recover", left_open, *password).out == f"ledger {left_open} is closed; its last entry is 1\n"
    assert bk("ledger", "recover", left_open, *password, "--json").document == {"ledger": left_open, "last_entry": 1}
    assert bk("ledger", "read", left_open, *password).out == "a\nb\n"


def test_a_ledger_is_recovered_without_its_password(cluster: Bookies) -> None:
    async def forgotten() -> int:
        async with BookKeeper.connect(cluster.uri) as client:
            ledger = await client.create_ledger(password=b"secret")
            await ledger.append_many([b"x"] * 5)
            return int(ledger.id)

    ledger = run(forgotten())
    bk("ledger", "recover", ledger, "-m", cluster.uri).refused("password")
    said = bk("ledger", "recover", ledger, "--as-operator", "-m", cluster.uri)
    assert said.out == f"ledger {ledger} is closed; its last entry is 4\n"


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    """The password of the ledgers that were left open."""
    path = tmp_path / "password"
    path.write_text("pw")
    path.chmod(0o600)
    return path


def test_a_recovery_that_cannot_be_finished_says_why_in_one_sentence(
    cluster: Bookies, left_open: int, password_file: Path
) -> None:
    password = ("--password-file", str(password_file))
    for name in ("b1", "b2"):
        cluster[name].kill()
    try:
        until(lambda: sorted(cluster.states().values()) == ["absent", "absent", "writable"], 30, cluster.states)
        status, out, err = run_bk("ledger", "recover", str(left_open), "-m", cluster.uri, *password)
        assert (status, out, len(err.splitlines())) == (1, "", 1), err
        assert "too few of the ledger's bookies could be fenced" in err
        assert "trying again may help" in err
    finally:
        cluster.all_up()
    assert bk("ledger", "recover", left_open, "-m", cluster.uri, "--password", "pw").status == 0


def test_a_ledger_that_cannot_be_closed_is_deleted_by_force_only(cluster: Bookies, left_open: int) -> None:
    for name in ("b1", "b2"):
        cluster[name].kill()
    try:
        until(lambda: sorted(cluster.states().values()) == ["absent", "absent", "writable"], 30, cluster.states)
        bk("ledger", "delete", left_open, "-m", cluster.uri, "--yes").refused("was not deleted", "force")
        assert bk("ledger", "delete", left_open, "-m", cluster.uri, "--yes", "--force").status == 0
    finally:
        cluster.all_up()
    bk("ledger", "show", left_open, "-m", cluster.uri).refused("there is no ledger")


def test_a_deleted_ledger_is_gone_and_deleting_asks_first(cluster: Bookies, written: int) -> None:
    asked = bk("ledger", "delete", written, "-m", cluster.uri, stdin=b"n\n")
    assert (asked.status, "Delete the ledger?" in asked.out) == (130, True)
    assert bk("ledger", "show", written, "-m", cluster.uri).status == 0
    assert bk("ledger", "delete", written, "-m", cluster.uri, "--yes").status == 0
    bk("ledger", "show", written, "-m", cluster.uri).refused("there is no ledger")


@pytest.fixture
def tail_of(cluster: Bookies, left_open: int, password_file: Path, tmp_path: Path) -> Iterator[Process]:
    words = ("ledger", "tail", str(left_open), "-m", cluster.uri, "--password-file", str(password_file))
    process = Process("tail", tmp_path, *words).start()
    yield process
    process.kill()


def test_tail_follows_until_the_ledger_is_closed(cluster: Bookies, left_open: int, tail_of: Process) -> None:
    tail_of.until_said("a\n")
    assert tail_of.running
    bk("ledger", "recover", left_open, "-m", cluster.uri, "--password", "pw")
    assert tail_of.wait() == 0
    assert tail_of.said == "a\nb\n"


def test_list_takes_a_bookie_and_a_state(cluster: Bookies, written: int, left_open: int) -> None:
    def listed(*words: object) -> set[int]:
        return {row["ledger"] for row in bk("ledger", "list", "-m", cluster.uri, "--json", *words).document}

    small = int(bk("ledger", "append", "-m", cluster.uri, *SMALL, stdin=b"a\n").out)
    (name,) = bk("ledger", "show", small, "-m", cluster.uri, "--json").document["fragments"][0]["ensemble"]
    (other, _) = sorted({"b1", "b2", "b3"} - {name})
    assert small in listed("--bookie", name) and small not in listed("--bookie", other)
    assert {small, written} <= listed("--state", "closed") and left_open not in listed("--state", "closed")
    assert left_open in listed("--state", "open", "--bookie", name) and listed("--state", "in-recovery") == set()
    bk("ledger", "list", "-m", cluster.uri, "--deleted", "--state", "open").refused("--deleted lists all", status=2)
