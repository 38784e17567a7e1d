"""Wrong input at the command line, over all verbs: the answer says what is wrong and what to do; nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bookkeeper.admin.commands import Said, bk

HUGE = 10**30
SIZE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


class Newcomer:
    """Somebody with a cluster of one bookie, and some files and directories that do not fit."""

    def __init__(self, home: Path) -> None:
        self.home, self.uri = home, f"embedded://{home}/bk?bookies=1"
        (home / "file").write_text("x\n")
        (home / "bytes").write_bytes(bytes(range(256)))
        (home / "dir").mkdir()
        assert bk("ledger", "append", "-m", self.uri, *SIZE, stdin=b"one\ntwo\n").status == 0
        secret = bk("ledger", "append", "-m", self.uri, *SIZE, stdin=b"hidden\n", environment={"BK_PASSWORD": "secret"})
        assert secret.status == 0
        self.empty = f"sqlite://{home}/empty.db"
        assert bk("init", "-m", self.empty).status == 0

    def types(self, line: str) -> Said:
        """``bk LINE``; CLUSTER, EMPTY and HOME stand for addresses and the directory, HUGE for a number."""
        places = {"CLUSTER": self.uri, "EMPTY": self.empty, "HUGE": str(HUGE)}
        words = (places.get(word, word) for word in line.split())
        return bk(*(word.replace("HOME", str(self.home)).replace("ESCAPE", "\x1b[31m") for word in words))

    def there(self) -> tuple[str, ...]:
        """What must stay as it is."""
        shown = [self.types("ledger list -m CLUSTER"), self.types("ledger read 0 -m CLUSTER")]
        return (*(each.out for each in shown), (self.home / "file").read_text(), *sorted(map(str, self.home.iterdir())))


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    found = Newcomer(tmp_path_factory.mktemp("newcomer"))
    before = found.there()
    yield found
    assert found.there() == before


CASES = [
    # which cluster
    ("ledger read 0", 2, "Give --metadata URI, or set BK_METADATA"),
    ("ledger read 0 -m nonsense", 1, "'nonsense' is not a metadata address, such as zk://HOST:PORT/ledgers"),
    ("ledger read 0 -m http://x/", 1, "it knows embedded, memory, sqlite, zk"),
    ("ledger read 0 -m sqlite://HOME/dir", 1, "HOME/dir is a directory, but the metadata are a file"),
    ("ledger read 0 -m sqlite://HOME/file", 1, "HOME/file: the file holds something else"),
    ("ledger read 0 -m sqlite://HOME/none.db", 1, "`bk init --metadata sqlite://HOME/none.db` makes one"),
    ("ledger read 0 -m zk://127.0.0.1:99999/ledgers", 1, "ports go from 1 to 65535"),
    ("ledger read 0 -m sqlite:///tmp/a%zz", 1, "write %25 for a % that is meant as such"),
    ("bookie run -m CLUSTER --dir HOME/b", 78, "a server needs sqlite:///FILE or zk://HOST:PORT/ledgers"),
    # which ledger
    ("ledger read 99 -m CLUSTER", 1, "there is no ledger 99"),
    ("ledger read -1 -m CLUSTER", 2, "-1 is below 0"),
    ("ledger read HUGE -m CLUSTER", 1, "from 0 to 2**63 - 1"),
    ("ledger read 0/1 -m CLUSTER", 2, "'0/1' is not a ledger id"),
    ("ledger show 99 -m CLUSTER", 1, "there is no ledger 99"),
    ("ledger tail 99 -m CLUSTER", 1, "there is no ledger 99"),
    ("ledger delete 99 -m CLUSTER --yes", 1, "there is no ledger 99"),
    ("ledger undelete 0 -m CLUSTER", 1, "ledger 0"),
    ("ledger explain 99 -m CLUSTER", 1, "there is no ledger 99"),
    ("ledger repair 99 -m CLUSTER", 1, "there is no ledger 99"),
    ("ledger recover 0 --accept-loss --yes -m CLUSTER", 1, "is final"),
    # whose
    ("ledger read 1 -m CLUSTER", 1, "--password-file or BK_PASSWORD"),
    ("ledger recover 1 -m CLUSTER", 1, "--password-file or BK_PASSWORD"),
    ("ledger delete 0 -m CLUSTER --yes --grace HUGE", 2, "at most 3153600000"),
    ("ledger delete 0 -m CLUSTER --yes --grace -1", 2, "at least 0"),
    # which bookie
    ("ledger read 0 --bookie nobody -m CLUSTER", 1, "there is no bookie nobody; known are b1"),
    ("ledger read 0 --bookie ESCAPE -m CLUSTER", 1, "there is no bookie \\x1b[31m"),
    ("ledger list --bookie nobody -m CLUSTER", 1, "there is no bookie nobody; known are b1"),
    ("bookies drain a/b -m CLUSTER", 1, "there is no bookie a/b; known are b1"),
    ("bookies forget nobody --yes -m CLUSTER", 1, "there is no bookie nobody; known are b1"),
    ("bookies safe-to-stop nobody -m CLUSTER", 1, "there is no bookie nobody; known are b1"),
    ("bookies place b1 /a/ESCAPE/../x -m CLUSTER", 1, "is no network location"),
    ("bookie run -m EMPTY --dir HOME/b --bookie-id a/b", 78, "letters, digits and :-_. are allowed"),
    ("bookie status --dir HOME/none", 1, "no bookie runs in HOME/none"),
    ("bookie check --dir HOME/dir", 1, "there are no files of a bookie: HOME/dir/journal does not exist"),
    # how many
    ("ledger append -m EMPTY HOME/file", 1, "needs 3 bookies, but none can be used"),
    ("ledger append -m CLUSTER --ensemble -3", 2, "at least 1"),
    ("ledger append -m CLUSTER --ensemble 2 --write-quorum 3", 1, "ensemble >= write_quorum >= ack_quorum"),
    ("bookies drain b1 --throttle fast -m CLUSTER", 2, "expected for example 1000000, 500K, 20M or 1G"),
    ("autorecovery trigger --delay HUGE -m EMPTY", 2, "at most 2147483647"),
    # which file
    ("ledger append -m CLUSTER HOME/nofile", 2, "'HOME/nofile': No such file or directory"),
    ("ledger append -m CLUSTER HOME/dir", 2, "'HOME/dir': Is a directory"),
    ("ledger metadata 0 export HOME/file -m CLUSTER", 1, "HOME/file exists already, and is not replaced"),
    ("ledger metadata 0 restore HOME/bytes -m CLUSTER", 1, "HOME/bytes does not have the metadata of a ledger"),
    ("metadata restore HOME/bytes sqlite://HOME/r.db", 1, "HOME/bytes: it is no backup of metadata: it is no text"),
    ("config check HOME/bytes", 1, "HOME/bytes is no text in UTF-8, which TOML is"),
    ("bookie run -m EMPTY --dir HOME/b --config HOME/bytes", 78, "HOME/bytes is no text in UTF-8"),
    ("bookie cookie create HOME/bytes -m CLUSTER", 1, "HOME/bytes is no cookie that can be used"),
    ("gateway token x --token-file HOME/dir", 2, "'HOME/dir' is a directory"),
    # which stream, journal, right, verb
    ("stream append no/such HOME/file -m CLUSTER", 1, "there is no stream named no/such"),
    ("stream create ESCAPE -m CLUSTER", 1, "it contains '\\x1b'"),
    ("journal show file:HOME/nofile", 1, "there is no journal in HOME/nofile"),
    ("access grant etl fly cluster -m CLUSTER", 1, "the rights are append, read"),
    ("access grant etl read nonsense:x -m CLUSTER", 1, "write streams:NAME, journals:NAME"),
    ("ledger read 0 -m CLUSTER --nonsense", 2, "No such option '--nonsense'"),
    ("stream config s -m CLUSTER", 2, "Did you mean 'configure'?"),
]


@pytest.mark.parametrize(("line", "status", "says"), CASES, ids=[line for line, _, _ in CASES])
def test_the_answer_to_wrong_input(newcomer: Newcomer, line: str, status: int, says: str) -> None:
    said = newcomer.types(line)
    assert said.status == status, said
    assert said.out == "" and says.replace("HOME", str(newcomer.home)) in said.err, said
    assert "Traceback" not in said.err and "Error(" not in said.err
    assert all(char == "\n" or char == "\t" or char.isprintable() for char in said.err), said.err


def test_a_grace_that_no_calendar_has_does_not_hide_the_other_deleted_ledgers(embedded: str) -> None:
    """The cause: one deletion with an endless grace ended every `bk ledger list --deleted` with a traceback."""
    from bookkeeper import BookKeeper
    from bookkeeper.real import run

    async def deleted() -> None:
        async with BookKeeper.connect(embedded) as client:
            for grace_s in (60, HUGE):
                ledger = await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
                await ledger.close()
                await client.delete_ledger(ledger.id, grace_s=grace_s)

    run(deleted())
    said = bk("ledger", "list", "--deleted", "-m", embedded)
    assert said.status == 0 and "2 deleted ledgers" in said.out and "ms after" in " ".join(said.out.split())
