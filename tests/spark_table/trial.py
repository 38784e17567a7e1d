"""Runs modes at two places through three lives of their driver, and compares."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from spark_wal.checkpoint_copy.open_store import open_store
from spark_wal.spark_access import GatewayAccess
from tests.spark_table.comparison import Left, batches, differences, without_place
from tests.spark_table.driver import Order
from tests.spark_table.input_files import write_inputs
from tests.spark_table.scene import MODES
from tests.spark_wal.processes import ROOT, JobProcess, conf

LIVES: Final = 3
_DRIVER: Final = Path(__file__).with_name("driver.py")


@dataclass(frozen=True)
class Outcome:
    """Of one mode."""

    mode: str
    batches: int
    """That both places committed."""
    crashed_in: int | None
    error: str
    """Of the last life that had one, at the gateway."""
    differences: tuple[str, ...]
    took_s: float

    @property
    def is_equal(self) -> bool:
        return not self.differences


class Trial:
    """Modes of one Spark. ``home`` keeps what is done, and goes on with the rest."""

    def __init__(
        self,
        home: Path,
        gateway: str,
        tell: Callable[[str], None] = print,
        *,
        python: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``gateway``: ``webhdfs://HOST:PORT``. ``python``: another one, with another PySpark."""
        self._home, self._gateway, self._tell = home, gateway, tell
        self._python = {} if python is None else {"python": python}
        self._settings = conf() if settings is None else dict(settings)
        _path(home, "").parent.mkdir(parents=True, exist_ok=True)
        self._inputs = home / "inputs"
        write_inputs(self._inputs)

    def outcome(self, mode: str) -> Outcome | None:
        """What came of a mode that is done."""
        return outcome_in(self._home, mode)

    def run(self, modes: Sequence[str]) -> list[Outcome]:
        """Run those that are not done, all of them in the same three processes."""
        missing = [mode for mode in modes if self.outcome(mode) is None]
        if missing:
            self._run(missing)
        return [found for mode in modes if (found := self.outcome(mode)) is not None]

    def _run(self, modes: Sequence[str]) -> None:
        orders = [order for mode in modes for order in self._orders(mode)]
        lived: dict[Order, list[tuple[str, float]]] = {order: [] for order in orders}
        crashes: dict[Order, int | None] = {}
        for life in range(LIVES):
            with self._driver(life, orders) as driver:
                for order in orders:
                    told = driver.line()
                    assert (told["mode"], told["place"]) == (order.mode, order.place), told
                    lived[order].append((told["error"], told["took_s"]))
                    self._tell(f"life {life + 1}: {order.mode}, {order.place}, {told['took_s']} s {told['error']}")
            if life == 0:
                crashes = {order: _crash(order) for order in orders}
            elif life == 1:
                for order in orders:
                    if MODES[order.mode].commits_again:
                        _remove_last_commit(order)
        for mode in modes:
            here, there = (order for order in orders if order.mode == mode)
            self._note(mode, here, there, lived, crashes)

    def _note(
        self,
        mode: str,
        here: Order,
        there: Order,
        lived: Mapping[Order, list[tuple[str, float]]],
        crashes: Mapping[Order, int | None],
    ) -> None:
        left = [
            Left(
                _files(order.base),
                _seen(Path(order.out)),
                tuple(without_place(error, order.base) for error, _ in lived[order]),
                crashes[order],
            )
            for order in (here, there)
        ]
        found = differences(left[0], left[1], (here.base, there.base))
        committed = batches(left[1].files, "commits")
        errors = [error for error in left[1].errors if error]
        took = sum(seconds for order in (here, there) for _, seconds in lived[order])
        outcome = Outcome(
            mode,
            len(committed),
            crashes[there],
            errors[-1] if errors else "",
            tuple(found),
            round(took, 1),
        )
        _path(self._home, mode).write_text(json.dumps(asdict(outcome)))
        self._tell(f"{mode}: {'equal' if outcome.is_equal else found}")

    def _orders(self, mode: str) -> Iterator[Order]:
        word = _word(mode)
        local, remote = self._home / "places" / word, f"{self._gateway}/{word}"
        shutil.rmtree(local, ignore_errors=True)
        _delete(remote)
        for place, base in (("file", f"file://{local}"), ("gateway", remote)):
            out = self._home / "seen" / word / place
            shutil.rmtree(out, ignore_errors=True)
            yield Order(mode, place, base, str(out))

    @contextmanager
    def _driver(self, life: int, orders: Sequence[Order]) -> Iterator[JobProcess]:
        """A driver for all of it, killed at the end."""
        fields = {
            "life": life,
            "orders": [asdict(order) for order in orders],
            "conf": self._settings,
            "inputs": str(self._inputs),
        }
        process = JobProcess(
            _DRIVER, fields, self._home / f"life{life + 1}", extra={"PYTHONPATH": str(ROOT)}, **self._python
        )
        try:
            yield process
        finally:
            process.kill()


def outcome_in(home: Path, mode: str) -> Outcome | None:
    """What came of a mode in a trial's home; None: it was not run there."""
    path = _path(home, mode)
    if not path.exists():
        return None
    fields = json.loads(path.read_text())
    return Outcome(**{**fields, "differences": tuple(fields["differences"])})


def _path(home: Path, mode: str) -> Path:
    """Of an outcome."""
    return home / "outcomes" / f"{_word(mode)}.json"


def _word(mode: str) -> str:
    """A mode's name as one of a directory."""
    return "-".join("".join(c if c.isalnum() else " " for c in mode).split())


def _files(base: str) -> dict[str, bytes]:
    store = open_store(base, GatewayAccess())
    try:
        return {path: b"".join(store.read(path)) for path in store.listing()}
    finally:
        store.close()


def _seen(out: Path) -> dict[str, object]:
    return {path.name: json.loads(path.read_text()) for path in out.glob("*.*") if not path.name.startswith(".")}


def _crash(order: Order) -> int | None:
    """The batch that is planned and not done."""
    files = _files(order.base)
    planned, done = batches(files, "offsets"), batches(files, "commits")
    return planned[-1] if planned and planned[-1] not in done else None


def _remove_last_commit(order: Order) -> None:
    done = batches(_files(order.base), "commits")
    if done:
        _delete(f"{order.base}/checkpoint/commits/{done[-1]}")


def _delete(uri: str) -> None:
    """A file or directory, with Hadoop's checksum beside a local file."""
    if uri.startswith("file://"):
        path = Path(uri.removeprefix("file://"))
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        return
    host, _, path_there = uri.removeprefix("webhdfs://").partition("/")
    url = f"http://{host}/webhdfs/v1/{path_there}?op=DELETE&recursive=true"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60).close()
