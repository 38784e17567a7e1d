"""Bookies change their version one by one, there and back, while writers write and readers read."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bookkeeper.sync import BookKeeper
from tests.integration.processes import Process, until

NAMES: Final = ("b1", "b2", "b3")
PER_LEDGER: Final = 150
"""Entries after which a writer closes its ledger and begins another one."""
MORE: Final = 40
"""Entries that each writer must have acknowledged between two changes."""
SETTINGS: Final = "[storage]\njournal_file_bytes = 8388608\nreserve_bytes = 1048576\n"


def payload(writer: int, number: int) -> bytes:
    """What a writer appends as its entry of this number."""
    return b"%d:%d:" % (writer, number) + b"x" * (number % 700)


@dataclass
class Writer:
    """Appends without end, in a thread; each append is awaited, and is never sent twice."""

    uri: str
    number: int
    acknowledged: int = 0
    ledgers: list[tuple[int, int, int]] = field(default_factory=list)
    """Ledger, number of its first entry, and how many were acknowledged."""
    failed: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            with BookKeeper.connect(self.uri) as client:
                while not self.over.is_set():
                    with client.create_ledger(
                        ensemble=3, write_quorum=3, ack_quorum=2, when_short="name_absent"
                    ) as ledger:
                        first, count = self.acknowledged, 0
                        while count < PER_LEDGER and not self.over.is_set():
                            ledger.append(payload(self.number, self.acknowledged))
                            count += 1
                            self.acknowledged += 1
                    self.ledgers.append((ledger.id, first, count))
        except BaseException as error:
            self.failed.append(error)

    def more(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        wanted = self.acknowledged + count
        until(lambda: self.failed or self.acknowledged >= wanted, 120, f"{wanted} appends of writer {self.number}")
        if self.failed:
            raise AssertionError(f"writer {self.number} ended") from self.failed[0]

    def end(self) -> None:
        """Stop, and close the ledger."""
        self.over.set()
        self._thread.join()
        if self.failed:
            raise AssertionError(f"writer {self.number} ended") from self.failed[0]


class Tour:
    """One earlier version, in a tree of its own, and this one."""

    def __init__(self, home: Path, tree: Path) -> None:
        self._home = home
        self._old: Mapping[str, str] = {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
        self._uri = f"sqlite://{home}/metadata.db"
        self._settings = home / "bookie.toml"
        self._settings.write_text(SETTINGS)
        self._each: dict[str, Process] = {}
        self._writers: list[Writer] = []
        self.report: list[str] = []
        """What happened, a line each."""
        self.whole = False
        """Whether everything that was acknowledged was read back."""

    def run(self) -> None:
        """There, back, and there again; then read everything."""
        with ExitStack() as held:
            held.callback(self._end)
            self._init()
            for name in NAMES:
                self._each[name] = self._process(name, old=True)
                self._each[name].start()
            for process in self._each.values():
                process.until_said(r"serves at \S+")
            self._writers = [Writer(self._uri, number) for number in range(2)]
            for writer in self._writers:
                held.callback(writer.over.set)
            self._load()
            for step, old in (("upgraded", False), ("put back", True), ("upgraded again", False)):
                for name in NAMES:
                    self._change(name, old=old, step=step)
            for writer in self._writers:
                writer.end()
            self._read_everything()

    def _init(self) -> None:
        process = Process("init", self._home, "init", "--metadata", self._uri, environment=self._old).start()
        if process.wait() != 0:
            raise AssertionError(process.said)

    def _process(self, name: str, *, old: bool) -> Process:
        words = ["bookie", "--metadata", self._uri, "--dir", str(self._home / name), "--bookie-id", name]
        return Process(name, self._home, *words, "--config", str(self._settings), environment=self._old if old else {})

    def _load(self) -> None:
        for writer in self._writers:
            writer.more(MORE)

    def _change(self, name: str, *, old: bool, step: str) -> None:
        """Stop a bookie in order, and start the other version on its directory."""
        before = sum(writer.acknowledged for writer in self._writers)
        status = self._each[name].stop()
        self._load()  # two of three go on
        self._each[name] = self._process(name, old=old).start()
        try:
            self._each[name].until_said(r"serves at \S+")
        except AssertionError:
            if not old or self._each[name].running:
                raise
            last = self._each[name].said.strip().splitlines()[-1]
            self.report.append(f"{name} was not {step}: the earlier version says {last!r}")
            self._each[name] = self._process(name, old=False).start()
            self._each[name].until_said(r"serves at \S+")
        else:
            after = sum(writer.acknowledged for writer in self._writers)
            self.report.append(f"{name} {step} (it stopped with status {status}); {after - before} appends meanwhile")
        self._load()

    def _read_everything(self) -> None:
        read = 0
        with BookKeeper.connect(self._uri) as client:
            for writer in self._writers:
                for ledger_id, first, count in writer.ledgers:
                    with client.open_ledger(ledger_id) as reader:
                        entries = [entry.payload for entry in reader.read(0, count - 1)] if count else []
                    wanted = [payload(writer.number, first + index) for index in range(count)]
                    if entries != wanted:
                        self.report.append(f"ledger {ledger_id} has not what was acknowledged")
                        return
                    read += count
        acknowledged = sum(writer.acknowledged for writer in self._writers)
        ledgers = sum(len(writer.ledgers) for writer in self._writers)
        self.report.append(f"{acknowledged} entries acknowledged in {ledgers} ledgers, {read} of them read back, right")
        self.whole = acknowledged == read

    def _end(self) -> None:
        for process in self._each.values():
            process.kill()
