"""Autorecovery across languages, each story on a cluster of its own: ours repairs Java's bookies and mixed ones, Java's
repairs ours, both run at once; Apache's shell asks and orders our auditor."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bookkeeper.meta import init_cluster
from bookkeeper.real import run, system_seams
from examples.apache_servers import JavaProcess, client_settings, java_command
from examples.apache_servers.settings import write_settings
from tests.integration.processes import Process, bk, bk_json, until
from tests.interop.apache_shell import apache_init, shell
from tests.interop.clients import OurClient, Shape
from tests.interop.clusters import Bookie, JavaBookie, Kind, OurBookie, Site
from tests.interop.java_client import JavaClient
from tests.interop.killed import payload
from tests.interop.stories import ANY_STATUS, expect

_COUNT: Final = 40
"""Entries of each ledger."""
_LEDGERS: Final = 6
_HEALED_S: Final = 90.0


class _Patient:
    """A cluster of four bookies that is to be healed, and a client in each language."""

    def __init__(self, site: Site, name: str, kinds: tuple[Kind, ...]) -> None:
        self.uri = f"zk://{site.zookeeper.address}/{name}"
        self.home = site.directory / name
        certificate = site.authority.server(name)
        if "java" in kinds:
            apache_init(self.uri)
        else:
            run(init_cluster(self.uri, system_seams()))
        self.bookies: list[Bookie] = []
        for number, kind in enumerate(kinds, 1):
            make: Callable[..., Bookie] = OurBookie if kind == "ours" else JavaBookie
            self.bookies.append(make(f"{name}-{number}", self.home / f"bookie-{number}", self.uri, certificate))
        for bookie in self.bookies:
            bookie.launch()
        for bookie in self.bookies:
            bookie.await_serving()
        self.ours = OurClient(self.uri, "v3")
        self.java = JavaClient(site.java, self.uri, "v3")

    def shell(self, *words: str, timeout_s: float = 60.0, expect: int | None = 0) -> str:
        return shell(*words, uri=self.uri, timeout_s=timeout_s, expect=expect)

    def written(self) -> list[int]:
        """Closed ledgers, half of them by each client."""
        ledgers = []
        for number in range(_LEDGERS):
            writer = (self.ours if number % 2 else self.java).create(Shape())
            writer.append_many([payload(i) for i in range(_COUNT)])
            writer.close()
            ledgers.append(writer.id)
        return ledgers

    def named(self, ledger_id: int) -> set[str]:
        """The bookies that hold a ledger."""
        metadata = self.ours.metadata(ledger_id)
        assert metadata is not None
        return {bookie for ensemble in metadata.fragments.values() for bookie in ensemble}

    def marked(self) -> set[int]:
        """The under-replicated ledgers, as our command lists them."""
        return set(self.status()["marked"])

    def status(self) -> Any:
        """What our command says of autorecovery; its exit status 1 says that some ledgers are stuck."""
        status, out, err = bk("autorecovery", "status", "--metadata", self.uri, "--json")
        assert status in (0, 1) and out, err
        return json.loads(out)

    def await_healed(self, ledgers: list[int], victim: str, told: Callable[[], str]) -> None:
        """Wait until no ledger names the victim and no mark is left; then everything must be on every bookie."""
        until(lambda: not any(victim in self.named(each) for each in ledgers), _HEALED_S, told)
        until(lambda: not self.marked() & set(ledgers), _HEALED_S, told)
        for ledger_id in ledgers:
            for client in (self.ours, self.java):
                reader = client.open(ledger_id)
                expect(reader.read(0, _COUNT - 1), [payload(i) for i in range(_COUNT)], f"ledger {ledger_id}")
                reader.close()
        rows = bk_json("ledger", "entries", str(ledgers[0]), "--metadata", self.uri)
        expect({row["missing"] for row in rows}, {0}, "entries that are missing")
        for bookie in self.named(ledgers[1]):
            words = ("-ledgerid", str(ledgers[1]), "-fe", "0", "-le", str(_COUNT), "-bookie", bookie)
            said = self.shell("readledger", *words, expect=ANY_STATUS)
            expect(len(re.findall(rf"Lid={ledgers[1]}, Eid=", said)), _COUNT, f"entries on {bookie}")

    def close(self) -> None:
        self.ours.close()
        self.java.close()
        for bookie in self.bookies:
            bookie.kill()


@contextmanager
def _patient(site: Site, name: str, *kinds: Kind) -> Iterator[_Patient]:
    patient = _Patient(site, name, kinds)
    try:
        yield patient
    finally:
        patient.close()
        shutil.rmtree(patient.home, ignore_errors=True)


@contextmanager
def _ours_heals(patient: _Patient) -> Iterator[Process]:
    """``bk autorecovery`` as a process."""
    options = ("--name", "our-healer", "--lost-bookie-delay", "1", "--grace", "5")
    process = Process("our-healer", patient.home, "autorecovery", "--metadata", patient.uri, *options)
    process.start()
    try:
        process.until_said("serves as our-healer")
        yield process
    finally:
        process.stop()


@contextmanager
def _javas_heals(patient: _Patient) -> Iterator[JavaProcess]:
    """Apache's ``AutoRecoveryMain`` as a process."""
    directory: Path = patient.home / "java-healer"
    settings = {
        "bookiePort": 1,
        "advertisedAddress": "127.0.0.1",
        "allowLoopback": True,
        "zkTimeout": 4000,
        "auditorPeriodicBookieCheckInterval": 2,
        "lostBookieRecoveryDelay": 1,
        "rereplicationEntryBatchSize": 100,
        "journalDirectories": directory,
        "ledgerDirectories": directory,
        "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
    }
    configuration = write_settings(directory / "conf", client_settings(patient.uri, settings))
    main = "org.apache.bookkeeper.replication.AutoRecoveryMain"
    process = JavaProcess("java-healer", directory, java_command(directory, main, "-c", str(configuration)))
    process.launch()
    try:
        yield process
    finally:
        process.stop()


def _auditor(patient: _Patient) -> str | None:
    found = patient.status()["auditor"]
    return None if found is None else str(found)


def ours_repairs_java(site: Site) -> None:
    """Four Java bookies, one is lost: our auditor finds it, our worker copies between Java's."""
    with _patient(site, "ours-heals-java", "java", "java", "java", "java") as patient, _ours_heals(patient) as healer:
        ledgers = patient.written()
        patient.bookies[0].kill()
        patient.await_healed(ledgers, patient.bookies[0].bookie_id, lambda: healer.said[-3000:])


def ours_repairs_mixed(site: Site) -> None:
    """Bookies of both kinds; a Java one is lost, and then, brought back, one of ours."""
    with _patient(site, "ours-heals-mixed", "ours", "java", "ours", "java") as patient, _ours_heals(patient) as healer:
        for victim in (patient.bookies[1], patient.bookies[0]):
            ledgers = patient.written()
            victim.kill()
            patient.await_healed(ledgers, victim.bookie_id, lambda: healer.said[-3000:])
            victim.launch()
            victim.await_serving()


def javas_repairs_ours(site: Site) -> None:
    """Bookies of ours, one is lost with its disk; Java's auditor and replicator do the whole of it."""
    with _patient(site, "java-heals-ours", "ours", "ours", "ours", "ours") as patient, _javas_heals(patient) as healer:
        ledgers = patient.written()
        until(lambda: _auditor(patient) is not None, _HEALED_S, lambda: healer.said[-3000:])
        patient.bookies[0].kill()
        shutil.rmtree(patient.home / "bookie-1" / "data")
        patient.await_healed(ledgers, patient.bookies[0].bookie_id, lambda: healer.said[-3000:])


def both_repair(site: Site) -> None:
    """Both run at once, on bookies of both kinds: one is the auditor, both may copy, and the other takes over."""
    kinds: tuple[Kind, ...] = ("ours", "java", "ours", "java")
    with _patient(site, "both-heal", *kinds) as patient, _javas_heals(patient) as java:
        until(lambda: _auditor(patient) is not None, _HEALED_S, lambda: java.said[-3000:])
        first = _auditor(patient)
        with _ours_heals(patient) as ours:
            until(
                lambda: f"{first} is the auditor" in str(patient.status()["processes"]),
                _HEALED_S,
                lambda: ours.said[-3000:],
            )
            ledgers = patient.written()
            patient.bookies[0].kill()
            patient.await_healed(ledgers, patient.bookies[0].bookie_id, lambda: java.said[-2000:] + ours.said[-1000:])
            java.kill()
            until(lambda: _auditor(patient) == "our-healer", _HEALED_S, lambda: ours.said[-3000:])
            patient.bookies[0].launch()
            patient.bookies[0].await_serving()
            ledgers = patient.written()
            patient.bookies[1].kill()
            patient.await_healed(ledgers, patient.bookies[1].bookie_id, lambda: ours.said[-3000:])


def shell_and_our_auditor(site: Site) -> None:
    """whoisauditor, lostbookierecoverydelay, recover and triggeraudit, as our auditor answers and obeys them."""
    with _patient(site, "shell-and-ours", "ours", "ours", "ours", "ours") as patient, _ours_heals(patient) as healer:
        until(lambda: _auditor(patient) == "our-healer", _HEALED_S, lambda: healer.said)
        said = patient.shell("whoisauditor")
        assert "our-healer" in said, said
        patient.shell("lostbookierecoverydelay", "-set", "600")
        assert "LostBookieRecoveryDelay value in ZK: 600" in patient.shell("lostbookierecoverydelay", "-get")
        ledgers = patient.written()
        first = patient.bookies[0].bookie_id
        patient.bookies[0].kill()
        until(lambda: "may come back: repair begins 600 s" in healer.said, _HEALED_S, lambda: healer.said)
        _switch(patient, "disable")  # what is marked meanwhile is left to the shell
        patient.shell("recover", "-force", "-ledger", str(ledgers[0]), first)
        assert first not in patient.named(ledgers[0])
        _switch(patient, "enable")
        patient.shell("triggeraudit")
        patient.await_healed(ledgers, first, lambda: healer.said[-3000:])


def _switch(patient: _Patient, word: str) -> None:
    status, _, err = bk("autorecovery", word, "--metadata", patient.uri)
    expect(status, 0, err)


def decommission(site: Site) -> None:
    """decommissionbookie has our auditor repair everything; listunderreplicated shows what our auditor marks."""
    with _patient(site, "decommission", "ours", "ours", "ours", "ours") as patient, _ours_heals(patient) as healer:
        until(lambda: _auditor(patient) == "our-healer", _HEALED_S, lambda: healer.said)
        ledgers = patient.written()
        first, second = (bookie.bookie_id for bookie in patient.bookies[:2])
        patient.bookies[0].kill()
        until(lambda: _state(patient, first) == "absent", _HEALED_S, "its session to end")
        said = patient.shell("decommissionbookie", "-bookieid", first, timeout_s=150)
        assert re.search("(decommission|cookie).*success", said, re.IGNORECASE | re.DOTALL), said[-3000:]
        assert first not in {row["bookie"] for row in bk_json("bookies", "--metadata", patient.uri)}
        patient.await_healed(ledgers, first, lambda: healer.said[-3000:])
        _list_what_cannot_be_repaired(patient, second)


def _list_what_cannot_be_repaired(patient: _Patient, victim: str) -> None:
    """Two bookies of four are left: what is marked stays so, and Apache's shell lists it with the bookie."""
    patient.bookies[1].kill()
    until(lambda: _state(patient, victim) == "absent", _HEALED_S, "its session to end")
    patient.shell("triggeraudit")
    marked = until(patient.marked, _HEALED_S, "marks")
    said = patient.shell("listunderreplicated", "-printmissingreplica")
    for ledger_id in marked:
        assert re.search(rf"\b{ledger_id}\b", said), said
    assert victim in said, said


def _state(patient: _Patient, bookie: str) -> str:
    return str({row["bookie"]: row["state"] for row in bk_json("bookies", "--metadata", patient.uri)}.get(bookie))
