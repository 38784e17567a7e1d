"""The command itself: verbs, help, and how mistakes end."""

from __future__ import annotations

import fnmatch
import gc
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Coroutine
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest

from bookkeeper.admin import cli
from bookkeeper.admin.cli import explain
from bookkeeper.admin.extras import EXTRAS
from bookkeeper.errors import BookKeeperError, MetadataUnavailableError, NoSuchLedgerError, UnauthorizedError
from bookkeeper.install import how_to_install
from bookkeeper.launchers.machine_speed import stretch
from spark_wal.commands import GatewayVerbs
from tests.bookkeeper.admin.commands import bk

ROOT = Path(__file__).parents[3]
VERBS = ["bookie", "bookies", "gateway", "init", "ledger", "standalone", "zookeeper"]
LEAVES = [
    *(["ledger", verb] for verb in ("append", "read", "tail", "show", "list", "recover", "delete")),
    ["gateway", "webhdfs"],
    *([verb] for verb in ("bookie", "bookies", "init", "standalone", "zookeeper")),
]


ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_help_lists_every_verb_with_a_sentence() -> None:
    said = bk("--help")
    assert said.status == 0
    lines = said.out.splitlines()
    for verb in VERBS:
        line = next(line for line in lines if line.startswith(f"  {verb} "))
        assert len(line.split()) > 3, f"{verb} says nothing about itself"


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_verb_explains_itself_and_each_of_its_options(words: list[str]) -> None:
    said = bk(*words, "--help")
    assert said.status == 0
    assert said.out.startswith(f"Usage: bk {' '.join(words)} [OPTIONS]")
    assert max(map(len, said.out.splitlines())) <= 100
    command: click.Command = cli.bk
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert command.help, "no sentence about the verb"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Choice):
            assert parameter.help or parameter.show_default, f"{parameter.opts} is not explained"


def test_the_version_is_the_distribution_s() -> None:
    assert bk("--version").out.startswith("bk 0.")


def test_what_is_not_there_is_one_sentence_with_status_2() -> None:
    bk("frobnicate").refused("frobnicate", status=2)
    bk("ledger", "frobnicate").refused("frobnicate", status=2)
    bk("bookies", "--frobnicate").refused("--frobnicate", status=2)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["ledgr"], "'ledger'"),
        (["ledger", "apend"], "'append'"),
        (["append"], "'bk ledger append'"),
        (["copy"], "'bk metadata copy'"),
        (["bookies", "--jsn"], "'--json'"),
        (["standalone", "--webhdfs"], "'--webhdfs-port'"),
    ],
)
def test_what_is_nearly_right_is_answered_with_what_may_be_meant(words: list[str], meant: str) -> None:
    """The verbs of ``bk`` are loaded when asked for, so that click knew no names to compare a misspelt one with."""
    bk(*words).refused("Did you mean", meant, status=2)


def test_a_package_that_an_extra_brings_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pip install .`` without extras, then a verb: it ended with the traceback of a missing module."""

    def lacks() -> None:
        raise ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp.web")

    verb = click.Command("lacks", callback=lacks)
    monkeypatch.setattr(cli, "_verbs", lambda: {"lacks": mock.Mock(load=lambda: verb)})
    bk("lacks").refused("needs the Python package aiohttp", "pip install '.[spark]' in a checkout")


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from bookkeeper.admin.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["--help"], None),
        (["gateway", "webhdfs", "--help"], None),
        (["gateway", "webhdfs", "--metadata", "file:///tmp/never"], "spark"),
        (["gateway", "spark-conf", "http://h:1", "--dir", "/tmp/never"], "spark"),
        (["checkpoint", "copy", "/tmp/never", "s3a://b/x"], "copy"),
        (["zookeeper", "--dir", "/tmp/never"], "spark"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else part,
)
def test_without_the_extras_every_verb_works_or_names_the_one_it_needs(words: list[str], extra: str | None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=set(EXTRAS)), *words],
        capture_output=True,
        text=True,
        timeout=60 * stretch(),
        check=False,
    )
    if extra is None:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("bk: ") and line.endswith(how_to_install(extra))


def test_the_wheel_brings_our_packages_and_no_other() -> None:
    """A top-level package ``examples`` in site-packages shadows everybody's own."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    packages = [place.parent.name for place in ROOT.glob("*/__init__.py")]
    found = {name for name in packages for pattern in told["include"] if fnmatch.fnmatch(name, pattern)}
    assert "examples" in packages
    assert found == {"bookkeeper", "journal_manager", "pyspark_bookkeeper", "segments", "spark_wal"}


@pytest.mark.parametrize("words", [["bookies"], ["init"], ["ledger", "list"], ["ledger", "show", "0"]], ids=" ".join)
def test_without_an_address_it_is_said_how_to_give_one(words: list[str]) -> None:
    bk(*words).refused("--metadata URI", "BK_METADATA", status=2)


def test_our_errors_end_with_a_sentence_and_a_traceback_only_when_asked_for(embedded: str) -> None:
    assert bk("ledger", "append", "-m", embedded, *ONE).status == 0
    bk("ledger", "show", 77, "-m", embedded).refused("there is no ledger 77")
    with pytest.raises(NoSuchLedgerError):
        bk("ledger", "show", 77, "-m", embedded, environment={"BK_TRACEBACK": "1"})


def test_errors_of_the_system_end_with_a_sentence_too(monkeypatch: pytest.MonkeyPatch, embedded: str) -> None:
    def refuse(work: Coroutine[Any, Any, Any], **_: object) -> None:
        work.close()
        raise PermissionError(13, "Permission denied", "/data")

    monkeypatch.setattr("bookkeeper.admin.shared.options.run", refuse)
    bk("ledger", "list", "-m", embedded).refused("Permission denied", "/data")


@pytest.mark.parametrize("ends", [click.Abort, KeyboardInterrupt])
def test_an_interrupted_command_says_nothing(
    monkeypatch: pytest.MonkeyPatch, ends: Callable[[], BaseException], embedded: str
) -> None:
    def interrupt(work: Coroutine[Any, Any, Any], **_: object) -> None:
        work.close()
        raise ends()

    monkeypatch.setattr("bookkeeper.admin.shared.options.run", interrupt)
    said = bk("ledger", "list", "-m", embedded)
    assert (said.status, said.out, "Error" in said.err) == (130, "", False)


def test_a_question_that_nobody_can_answer_says_so(embedded: str) -> None:
    ledger = bk("ledger", "append", "-m", embedded, "--size", 1, "--count", 1, *ONE).out.strip()
    asked = bk("ledger", "delete", ledger, "-m", embedded)
    assert asked.status == 130
    assert asked.err.endswith("\nbk: the question got no answer: standard input has ended\n")
    refused = bk("ledger", "delete", ledger, "-m", embedded, stdin=b"n\n")
    assert (refused.status, refused.err) == (130, "")


@pytest.mark.parametrize("status", [0, 3])
def test_the_status_a_verb_exits_with_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    def leave() -> None:
        raise click.exceptions.Exit(status)

    verb = click.Group("leave", commands={"now": click.Command("now", callback=leave)})
    monkeypatch.setattr(cli, "_verbs", lambda: {"leave": mock.Mock(load=lambda: verb)})
    assert bk("leave", "now").status == status


def test_what_a_verb_returns_is_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    verb = click.Command("count", callback=lambda: 7)
    monkeypatch.setattr(cli, "_verbs", lambda: {"count": mock.Mock(load=lambda: verb)})
    assert bk("count").status == 0


def test_a_verb_whose_package_is_missing_says_so_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = EntryPoint("gateway", "no_such_package_here.commands:gateway", cli.COMMAND_GROUP)
    monkeypatch.setattr(cli, "_verbs", lambda: {"gateway": absent})
    assert "Not available" in bk("--help").out
    bk("gateway").refused("bk gateway needs the Python package no_such_package_here")


@pytest.mark.parametrize("verb", cli.OWN)
def test_our_own_verbs_are_found_without_a_search_and_are_nobody_else_s(
    monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def search() -> dict[str, EntryPoint]:
        raise AssertionError("everything that is installed was searched")

    monkeypatch.setattr(cli, "_verbs", search)
    found = cli.bk.get_command(click.Context(cli.bk), verb)
    assert found is not None
    assert found.name == verb


@pytest.mark.parametrize("collects", [True, False])
def test_after_a_verb_was_loaded_garbage_is_collected_as_before(
    monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    during: list[bool] = []

    def load() -> click.Command:
        during.append(gc.isenabled())
        raise ModuleNotFoundError(name="x")

    monkeypatch.setattr(cli, "_verbs", lambda: {"new": mock.Mock(load=load)})
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        cli.bk.get_command(click.Context(cli.bk), "new")
        assert (during, gc.isenabled()) == ([False], collects)
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoSuchLedgerError("there is no ledger 7"), "there is no ledger 7"),
        (BookKeeperError(), "BookKeeperError"),
        (MetadataUnavailableError("gone"), "gone (trying again may help)"),
        (UnauthorizedError("no"), "no (give the ledger's password with --password-file or BK_PASSWORD)"),
        (OSError(2, "No such file", "x"), "x: No such file"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (BookKeeperError("a: [Errno 28] No space left: '/x/y'; b"), "a: /x/y: No space left; b"),
        (BookKeeperError("b1: [Errno 111] Connection refused"), "b1: Connection refused"),
        (
            OSError(98, "error while attempting to bind on address ('127.0.0.1', 9870): address already in use"),
            "127.0.0.1:9870 is taken: another program listens there. End it, or choose another port",
        ),
        (
            OSError(99, "error while attempting to bind on address ('10.1.2.3', 1): cannot assign requested address"),
            "cannot listen at 10.1.2.3:1: cannot assign requested address",
        ),
    ],
)
def test_an_error_is_explained_in_one_sentence(error: BaseException, text: str) -> None:
    assert explain(error) == text


@pytest.mark.rule("X38")
def test_an_error_that_others_have_written_commands_no_terminal() -> None:
    assert explain(MetadataUnavailableError("of \x1b[2Jb1\nb9")).startswith("of \\x1b[2Jb1\nb9")


def test_what_a_verb_notes_is_part_of_the_sentence() -> None:
    error = MetadataUnavailableError("gone")
    error.add_note("it may or may not have happened")
    assert explain(error) == "gone (it may or may not have happened; trying again may help)"


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk"
    bk("ledger", "append", "-m", uri, stdin=b"a line of some length\n" * 20_000)
    script = f'"{sys.executable}" -m bookkeeper.admin ledger read 0 -m "{uri}" | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60 * stretch(), check=True)
    assert done.stdout.splitlines() == ["a line of some length", "0"]
    assert done.stderr == ""


def test_a_reader_of_a_table_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    """The reader ends before the table comes: what is printed meets a pipe that nobody reads."""
    uri = f"embedded://{tmp_path}/bk"
    bk("ledger", "append", "-m", uri, stdin=b"one\n")
    for words in (["ledger", "list"], ["cluster", "status"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.admin", *words, "-m", uri],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60 * stretch(),
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, ""), words


def test_without_a_verb_there_is_the_help_and_nothing_else() -> None:
    for words in ([], ["ledger"]):
        said = bk(*words)
        assert (said.status, said.out) == (2, "")
        assert said.err == bk(*words, "--help").out
        assert said.err.count("Usage: ") == 1


def loaded(*words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    script = (
        "import sys; from bookkeeper.admin.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    return set(done.stderr.split())


_SEVERAL = {"rich", "kazoo", "aiohttp", "grpc", "pyarrow", "prometheus_client", "sqlite3"}
_NOTHING = {*_SEVERAL, "asyncio", "ssl", "google.protobuf", "cattrs", "bookkeeper.client", "bookkeeper.meta"}
_ABOVE = {"spark_wal", "segments", "journal_manager"}
_DISK = {"bookkeeper.bookie.bookie", "bookkeeper.storage.engine", "bookkeeper.embedded"}


@pytest.mark.parametrize(
    ("line", "without"),
    [
        ("--version", {*_NOTHING, *_ABOVE, *_DISK, "bookkeeper.real"}),
        ("--help", {*_NOTHING, *_ABOVE, *_DISK, "bookkeeper.real"}),
        ("standalone --help", {*_NOTHING, *_ABOVE, *_DISK}),
        ("zookeeper --help", {*_NOTHING, *_ABOVE, *_DISK}),
        ("init --help", {*_SEVERAL, *_ABOVE, *_DISK, "bookkeeper.client"}),
        ("ledger read --help", {*_SEVERAL, *_ABOVE, "bookkeeper.storage", "bookkeeper.bookie", "bookkeeper.embedded"}),
        ("bookies --help", {*_SEVERAL, *_ABOVE, *_DISK}),
        ("metadata --help", {*_SEVERAL, *_ABOVE, *_DISK}),
        ("cluster --help", {*_SEVERAL, *_ABOVE, *_DISK}),
        ("autorecovery --help", {*_SEVERAL, *_ABOVE, *_DISK}),
        ("bookie --help", {*_SEVERAL, *_ABOVE, "bookkeeper.client.bookkeeper", "bookkeeper.embedded"}),
        ("journal --help", {*_SEVERAL, *_DISK, "spark_wal", "segments", "bookkeeper.client"}),
        ("stream --help", {*_SEVERAL, *_DISK, "spark_wal"}),
        ("checkpoint --help", {*_SEVERAL, *_DISK, "segments", "bookkeeper.client"}),
        ("gateway --help", {*_SEVERAL, *_DISK, "segments"}),
    ],
)
def test_a_command_loads_what_it_needs(line: str, without: set[str]) -> None:
    """``bk --help`` loaded every verb, and took fourteen times the processor time of ``bk --version``."""
    assert loaded(*line.split()) & without == set()


def test_what_the_list_of_verbs_says_of_each_is_what_its_own_help_says() -> None:
    context = click.Context(cli.bk)
    for name in cli.bk.list_commands(context):
        command = cli.bk.get_command(context, name)
        assert command is not None
        assert cli.bk.sentence(name) in (None, command.get_short_help_str(sys.maxsize)), name
        assert name not in cli.OWN or cli.bk.sentence(name) is not None, name
    gateway = cli.bk.get_command(context, "gateway")
    assert isinstance(gateway, GatewayVerbs)
    grpc = gateway.get_command(context, "grpc")
    assert grpc is not None and gateway.sentence("grpc") == grpc.get_short_help_str(sys.maxsize)


def test_a_number_below_zero_is_no_option() -> None:
    """Cause: click takes it for an option, and said that there is no such one."""
    bk("ledger", "read", "-1", "-m", "memory:x").refused("-1 is below 0, and there is no such number here", status=2)
    bk("ledger", "read", "-x", "-m", "memory:x").refused("No such option", "-x", status=2)
