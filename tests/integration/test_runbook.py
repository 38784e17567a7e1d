"""docs/runbook.md: its commands are run on one cluster, each in the situation that its section is about.

Bookies and autorecovery are processes; the commands run in the test's own.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

from bookkeeper import BookKeeper
from bookkeeper.admin import cli
from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.meta import Metadata
from bookkeeper.real import run, system_seams
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, Process, until
from tests.integration.runbook import SECTIONS, Runbook, commands
from tests.integration.test_readme import ROOT

NAMED: Final = "it names the verb; it is run in the sections about it"
ELSEWHERE: Final[dict[str, dict[str, str]]] = {
    "A disk is full": {
        "bk metadata backup": "it names the verb; tests/fault_table fills the disks",
        "bk stream export": "it names the verb; tests/fault_table fills the disks",
    },
    "A file of a bookie is damaged": {"bk bookies decommission B": "as in the first section"},
    "The metadata were restored from a backup": {
        "bk metadata accept-rollback": "tests/integration/test_metadata_backup.py puts a cluster back"
    },
    "Metrics": {"bk bookie scrub": NAMED, "bk bookies": NAMED, "bk autorecovery status": NAMED},
    "Exit statuses": dict.fromkeys(sorted(commands("Exit statuses")), NAMED),
}
"""Section -> command -> why it is not run here."""
WITHOUT: Final = {title for title in SECTIONS if not commands(title)}
"""Sections that have no command of ours: what they say is about systems around it, or refers to other sections."""


def test_sections_without_commands_are_those_that_need_none() -> None:
    assert {
        "A certificate ends soon",
        "A checkpoint fails",
        "A gateway is gone",
        "A gateway refuses requests",
        "A process starts again and again",
        "A server is open to everybody",
        "Alarms",
        "Descriptors run out",
        "The audit log cannot be written",
        "The metadata store is away",
    } == WITHOUT


def _named(page: str) -> Iterator[str]:
    text = (ROOT / "docs" / page).read_text()
    yield from re.findall(r"`(bk [a-z][^`\n]*)`", text)
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"^(?:\$ )?(bk [a-z].*)$", block, re.MULTILINE)


@pytest.mark.parametrize("page", ["runbook.md", "operators.md"])
def test_every_verb_and_option_that_is_named_exists(page: str) -> None:
    wrong, count = [], 0
    for line in _named(page):
        count += 1
        at: click.Command = cli.bk
        words = shlex.split(line.replace("[", " ").replace("]", " ").replace("|", " "), comments=True)[1:]
        for word in words:
            if not word.startswith("-"):
                found = at.get_command(click.Context(at), word) if isinstance(at, click.Group) else None
                at = found or at
                if found is None and isinstance(at, click.Group):
                    wrong.append(f"{line}: no verb {word}")
            else:
                if isinstance(at, DefaultCommandGroup):
                    at = at.get_command(click.Context(at), at.default) or at
                known = {option for each in at.params for option in each.opts + each.secondary_opts}
                if word not in known | {"--help", "-h"}:
                    wrong.append(f"{line}: no option {word}")
    assert count > 30 and not wrong, "\n".join(wrong)


# -- the cluster ----------------------------------------------------------------------------------------------


def payload(ledger: int, entry: int) -> bytes:
    """What is nowhere else on a disk."""
    return b"entry %d of ledger %d " % (entry, ledger) * 20


class Healed(Bookies):
    """Three bookies with pages, and autorecovery beside them."""

    healer: Process

    def add(self, name: str, *more: str, directory: Path | None = None) -> Process:
        if "checkpoint" not in (usual := self._settings.read_text()):
            self._settings.write_text(f"{usual}checkpoint_bytes = 8192\n")  # a scrub reads what one has covered
        return super().add(name, "--http", "127.0.0.1:0", *more, directory=directory)

    def dir(self, name: str) -> Path:
        return self.home / name

    def page(self, name: str) -> dict[str, Any]:
        address = self[name].until_said(r"(http://\S+)")[1]
        with urllib.request.urlopen(f"{address}/healthz", timeout=10) as reply:
            return dict(json.loads(reply.read()))

    def metric(self, process: Process, name: str) -> float:
        address = process.until_said(r"(http://\S+)")[1].rstrip(",")
        with urllib.request.urlopen(f"{address}/metrics", timeout=10) as reply:
            found = re.search(rf"^{name} (\S+)$", reply.read().decode(), re.MULTILINE)
        return float(found[1] if found else "nan")

    def ledger(self, *names: str, closed: bool = True, entries: int = 20) -> int:
        """A ledger whose copies are on exactly these bookies."""
        others = [name for name in self.each if name not in names and self[name].running]
        for other in others:
            assert self.bk("bookies", "read-only", other) == 0
        until(lambda: all(self.states()[other] == "read-only" for other in others))

        async def made() -> int:
            async with BookKeeper.connect(self.uri) as client:
                size = len(names)
                ledger = await client.create_ledger(ensemble=size, write_quorum=size, ack_quorum=size)
                await ledger.append_many([payload(int(ledger.id), number) for number in range(entries)])
                await (ledger.close() if closed else ledger.abandon())
                return int(ledger.id)

        ledger = run(made())
        for other in others:
            assert self.bk("bookies", "read-only", other, "--off") == 0
        until(lambda: all(self.states()[other] == "writable" for other in others))
        return ledger

    def bk(self, *words: object) -> int:
        return bk(*words, "-m", self.uri).status

    def kill(self, *names: str) -> None:
        for name in names:
            self[name].kill()
        until(lambda: all(self.states().get(name) == "absent" for name in names), what=self.states)

    def well(self) -> None:
        """Everybody is back, and nothing is to be repaired."""
        self.all_up()
        until(lambda: self.bk("ledger", "underreplicated") == 0, what="every ledger whole")

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "healer"):
            self.healer.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Healed]:
    found = Healed(tmp_path)
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_every_section_s_commands_do_in_its_situation_what_the_page_says(cluster: Healed) -> None:
    runbook = Runbook(cluster.uri, ELSEWHERE)
    _nobody_audits(cluster, runbook)
    _all_is_well(cluster, runbook)
    _a_disk_fills(cluster, runbook)
    _space_stays(cluster, runbook)
    _adds_and_reads(cluster, runbook)
    _a_file_is_damaged(cluster, runbook)
    _a_ledger_is_stuck(cluster, runbook)
    _no_copy_is_left(cluster, runbook)
    _many_are_gone(cluster, runbook)
    _a_bookie_is_gone(cluster, runbook)
    _a_directory_is_lost(cluster, runbook)
    _the_policy_cannot_be_read(cluster, runbook)
    left = {title for title in SECTIONS if commands(title) - set(ELSEWHERE.get(title, ()))} - runbook.taken
    assert not left, f"sections of which nothing was run: {sorted(left)}"


def _nobody_audits(cluster: Healed, runbook: Runbook) -> None:
    with runbook.section("Nobody audits") as page, runbook.section("Metrics") as metrics:
        assert "auditor: none" in page.bk("bk autorecovery status").out
        assert cluster.bk("autorecovery", "disable") == 0
        words = metrics.words("bk autorecovery run --http 127.0.0.1:PORT")
        assert words[:2] == page.words("bk autorecovery run")
        words[-1] = "127.0.0.1:0"
        cluster.healer = Process("healer", cluster.home, *words, "--name", "healer", "-m", cluster.uri).start()
        cluster.healer.until_said(r"serves as healer")
        until(lambda: cluster.metric(cluster.healer, "autorecovery_is_auditor") == 1, what="an auditor")
        assert "disabled" in page.bk("bk autorecovery status").out
        page.bk("bk autorecovery enable")
        until(lambda: "disabled" not in page.bk("bk autorecovery status", status=None).out)
        assert "auditor: healer" in page.bk("bk autorecovery status").out
        assert cluster.metric(cluster["b1"], "bookie_registered") == 1
    with runbook.section("Ledgers lack copies") as page:
        page.bk("bk autorecovery status")
        page.words("bk autorecovery run")  # as above


def _all_is_well(cluster: Healed, runbook: Runbook) -> None:
    cluster.ledger("b1", "b2")
    with runbook.section("") as page:
        assert "well: nothing is lost, short or stuck" in page.bk("bk cluster status").out
    with runbook.section("Before bookies are stopped", **{"ID…": "b1"}) as page:
        page.bk("bk autorecovery disable")
        assert "yes" in page.bk("bk bookies safe-to-stop ID…").out
        page.bk("bk bookies safe-to-stop ID…", "b2", status=1)
        page.bk("bk autorecovery enable")


def _a_disk_fills(cluster: Healed, runbook: Runbook) -> None:
    needed, not_needed = cluster.ledger("b2", "b3"), cluster.ledger("b2", "b3")
    settings = cluster.home / "bookie.toml"
    usual = settings.read_text()
    cluster["b3"].stop()
    settings.write_text(re.sub(r"reserve_bytes = \d+", f"reserve_bytes = {1 << 50}", usual))
    cluster["b3"].start().until_said(r"serves at \S+")
    settings.write_text(usual)
    with runbook.section("A disk is full", DIR=cluster.dir("b3"), ID="b3") as page:
        until(lambda: page.shows("read-only", page.bk("bk bookies").out))
        health = cluster.page("b3")
        assert health["disk"] == "read-only" and any(str(cluster.dir("b3")) in each for each in health["sentences"])
        assert "entry log" in page.bk("bk bookie gc --dir DIR --dry-run").out
        page.bk("bk ledger delete ID --grace 0", "--yes", ID=not_needed)
        waits = page.bk("bk bookie gc --dir DIR --major").out
        assert re.search(r"1 more ledger is not in the metadata any more: a pass from \d+ s on", waits), waits
        page.bk("bk bookies read-only ID")
        page.bk("bk bookies drain ID")
        shown = bk("ledger", "show", needed, "-m", cluster.uri, "--json").document
        assert "b3" not in json.dumps(shown["fragments"])
    assert cluster.bk("bookies", "read-only", "b3", "--off") == 0
    cluster["b3"].stop()
    cluster.well()


def _space_stays(cluster: Healed, runbook: Runbook) -> None:
    with runbook.section("Space does not come back", DIR=cluster.dir("b1")) as page:
        assert bk("bookie", "suspend", "--dir", cluster.dir("b1")).status == 0
        assert any("suspended" in each for each in cluster.page("b1")["sentences"]), cluster.page("b1")
        page.bk("bk bookie resume --dir DIR")
        assert not any("suspended" in each for each in cluster.page("b1")["sentences"])


def _adds_and_reads(cluster: Healed, runbook: Runbook) -> None:
    ledger = cluster.ledger("b1", "b3")
    with runbook.section("Adds are refused or slow", B="b1") as page:
        page.bk("bk bookies read-only B")
        until(lambda: cluster.metric(cluster["b1"], "bookie_writable") == 0)
        assert cluster.bk("bookies", "read-only", "b1", "--off") == 0
        until(lambda: cluster.metric(cluster["b1"], "bookie_writable") == 1)
    with runbook.section("Reads fail", DIR=cluster.dir("b1"), B="b1", LEDGER=ledger) as page:
        assert "no damage was found" in page.bk("bk bookie scrub --dir DIR").out
        page.bk("bk ledger read LEDGER --bookie B")


def _flip(directory: Path, stored: bytes) -> Path:
    """Damage the entry that holds ``stored`` on a bookie's disk."""
    for log in sorted(directory.rglob("*.log")):
        if (at := log.read_bytes().find(stored)) >= 0:
            with log.open("r+b") as file:
                file.seek(at)
                file.write(b"\xff")
            return log
    raise AssertionError(f"{directory} has no entry log with {stored!r}")


def _a_file_is_damaged(cluster: Healed, runbook: Runbook) -> None:
    ledger, directory = cluster.ledger("b1", "b2"), cluster.dir("b1")
    title = "A file of a bookie is damaged"
    with runbook.section(title, DIR=directory, B="b1", ID=ledger) as page:
        page.bk("bk ledger read ID --bookie B")
        log = _flip(directory, payload(ledger, 7))
        other = cluster.ledger("b1", "b2")  # more than a checkpoint waits for
        scrubbed = until(
            lambda: (said := page.bk("bk bookie scrub --now --dir DIR", status=None)).status == 1 and said,
            what="a checkpoint that covers the ledger",
        )
        assert scrubbed and str(log) in "".join(scrubbed.out.split("\n"))
        _flip(directory, payload(ledger, 9))
        assert "entry 9" in page.bk("bk ledger read ID --bookie B", status=1).err
        until(lambda: page.bk("bk ledger read ID --bookie B", status=None).status == 0, what="it copies the entry back")
        page.bk("bk bookie scrub --dir DIR", status=None)
        assert "yes" in page.bk("bk bookies safe-to-stop B").out
        offline = ["bk bookie check --deep --dir DIR", "bk bookie index rebuild --dir DIR"]
        offline += ["bk bookie scrub --offline --dir DIR"]
        for command in offline:
            assert page.shows("a bookie runs on", page.bk(command, status=1).err), command
        assert cluster["b1"].stop() == 0
        log = _flip(directory, payload(ledger, 11))
        for command in offline:
            said = page.bk(command, status=1, DIR=cluster.home).err
            assert page.shows("there are no files of a bookie", said), said
        assert str(log) in page.bk("bk bookie check --deep --dir DIR", status=1).out
        assert page.shows("the index stays as it is", page.bk("bk bookie index rebuild --dir DIR", status=1).err)
        assert str(log) in page.bk("bk bookie scrub --offline --dir DIR", status=1).out
        file = cluster.home / "exported"
        assert cluster.bk("ledger", "metadata", ledger, "export", file) == 0
        said = page.bk("bk ledger metadata ID restore FILE", "--yes", status=1, FILE=file, ID=other).err
        assert page.shows("has metadata that can be read", said) and "not replaced" in said
    cluster.well()


def _a_ledger_is_stuck(cluster: Healed, runbook: Runbook) -> None:
    ledger = cluster.ledger("b1", "b2", "b3")
    cluster.kill("b2")
    assert cluster.bk("autorecovery", "trigger") == 0
    with runbook.section("A ledger is stuck", ID=ledger) as page:
        until(lambda: page.shows("no bookie can take the place of", page.bk("bk autorecovery status", status=None).out))
        page.bk("bk autorecovery status", status=1)
        assert str(ledger) in page.bk("bk ledger underreplicated", status=1).out
        assert "b2 gone" in page.bk("bk ledger explain ID", status=1).out
        said = page.bk("bk ledger repair ID", status=1)
        assert "no bookie can take the place of" in " ".join((said.out + said.err).split())
        cluster.all_up()
        # the others repair, too, and one at a time holds a ledger's lock
        until(lambda: page.bk("bk ledger repair ID", status=None).status == 0, what=f"ledger {ledger} whole")
        until(lambda: page.bk("bk ledger underreplicated", status=None).status == 0, what="no mark")
    cluster.well()


def _no_copy_is_left(cluster: Healed, runbook: Runbook) -> None:
    ledger, closed = cluster.ledger("b2", closed=False), cluster.ledger("b2")
    cluster.kill("b2")
    with runbook.section("Entries have no readable copy", ID=ledger) as page:
        assert page.shows("LOST for now", page.bk("bk ledger explain ID", status=1, ID=closed).out)
        said = page.bk("bk ledger recover ID --accept-loss", status=130, stdin=b"n\n")
        assert "given up would be" in said.err and "b2 does not answer" in said.err
        cluster.all_up()
        assert "its last entry is 19\nnothing was given up" in page.bk("bk ledger recover ID --accept-loss").out
    cluster.well()
    for each in (ledger, closed):
        assert cluster.bk("ledger", "delete", each, "--grace", "0", "--yes") == 0


def _many_are_gone(cluster: Healed, runbook: Runbook) -> None:
    cluster.kill("b2", "b3")
    with runbook.section("Many bookies are gone at once") as page:
        until(
            lambda: (
                page.shows("bookies are lost together", page.bk("bk autorecovery status", status=None).out)
                and page.shows("that looks like a cut network", page.bk("bk autorecovery status", status=None).out)
            )
        )
        page.bk("bk autorecovery trigger")
        until(lambda: "cut network" not in page.bk("bk autorecovery status", status=None).out)
    cluster.well()


def _a_bookie_is_gone(cluster: Healed, runbook: Runbook) -> None:
    for ledger in bk("ledger", "list", "-m", cluster.uri, "--json").document:
        assert cluster.bk("ledger", "delete", ledger["ledger"], "--grace", "0", "--yes") == 0
    ledger, other = cluster.ledger("b1", "b2"), cluster.ledger("b1", "b3")
    cluster.kill("b2")
    with runbook.section("A bookie is gone", ID=ledger) as page:
        assert page.shows("absent", page.bk("bk bookies").out)
        until(
            lambda: page.shows(
                "b2 may come back: repair begins 30 s after a bookie was lost",
                page.bk("bk autorecovery status", status=None).out,
            )
        )
        page.bk("bk autorecovery trigger")
        until(lambda: not bk("ledger", "list", "--bookie", "b2", "-m", cluster.uri, "--json").document)
        page.bk("bk bookies decommission b2")
        assert "b2" not in cluster.states()
        cluster.each.pop("b2")
        shutil.rmtree(cluster.dir("b2"))
        cluster.add("b2")
        cluster.await_serving()
        # a new disk: b3's ledgers still name it
        cluster.kill("b3")
        shutil.rmtree(cluster.dir("b3"))
        assert "ledger" in page.bk("bk bookies forget b3", "--yes", status=1).err
        page.bk("bk bookie cookie delete b3", "--yes")
        cluster.restart("b3")
        until(lambda: bk("ledger", "read", other, "--bookie", "b3", "-m", cluster.uri).status == 0)
    cluster.well()


def _a_directory_is_lost(cluster: Healed, runbook: Runbook) -> None:
    one, two, directory = cluster.home / "disk1", cluster.home / "disk2", cluster.dir("b4")
    one.mkdir()
    two.mkdir()
    cluster.add("b4", "--ledger-dir", str(one), "--ledger-dir", str(two)).until_said(r"serves at \S+")
    ledgers = [cluster.ledger("b1", "b4") for _ in range(2)]
    assert bk("bookie", "lose-directory", "--dir", directory, two, "--yes").status == 0
    two.rename(cluster.home / "taken out")
    with runbook.section("A ledger directory is lost", DIR=directory, B="b4", PLACE=two) as page:
        assert page.shows("lost", page.bk("bk bookie directories --dir DIR").out)
        assert cluster.metric(cluster["b4"], "bookie_lost_directories") == 1
        for ledger in ledgers:
            until(lambda of=ledger: cluster.bk("ledger", "read", of, "--bookie", "b4") == 0)  # type: ignore[misc]
        until(lambda: "missing" not in page.bk("bk bookie status --dir DIR").out)
        page.bk("bk bookies safe-to-stop B")
        two.mkdir()
        page.bk("bk bookie add-directory --dir DIR PLACE")
        assert "lost" not in page.bk("bk bookie directories --dir DIR").out
        assert cluster.metric(cluster["b4"], "bookie_lost_directories") == 0


def _the_policy_cannot_be_read(cluster: Healed, runbook: Runbook) -> None:
    async def damage() -> None:
        metadata = await Metadata.connect(cluster.uri, system_seams())
        await metadata.store.create(metadata.access.path, b'{"format":99}', parents=True)
        await metadata.close()

    run(damage())
    with runbook.section("The access policy cannot be read") as page:
        until(lambda: cluster.metric(cluster["b1"], "bookie_access_policy_unreadable") == 1)
        assert "`bk access off --discard`" in page.bk("bk access list", status=1).err
        page.bk("bk access off --discard")
        page.bk("bk access list")
        until(lambda: cluster.metric(cluster["b1"], "bookie_access_policy_unreadable") == 0)
