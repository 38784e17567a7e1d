"""The directories of a bookie that does not run: options that name them, their locks, and what is in the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from bookkeeper.admin.options import F
from bookkeeper.bookie.config import load_storage_config
from bookkeeper.errors import BookKeeperError
from bookkeeper.real import system_seams
from bookkeeper.seams import Disk, Lock
from bookkeeper.storage.checkpoint.manifest import NAME, Manifest, read_manifest
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.start.start import LOCK


@dataclass(frozen=True, slots=True)
class StoppedBookie:
    """Where a bookie's files are."""

    directory: str
    storage: StorageConfig
    disk: Disk

    @property
    def data_directories(self) -> list[str]:
        """Those with journal and ledgers."""
        return list(dict.fromkeys((self.storage.journal_dir, self.storage.ledger_dir)))

    def manifest(self) -> Manifest:
        """
        Raises:
            ClickException: it is missing.
            CorruptionError, UnsupportedFormatError
        """
        found = read_manifest(self.disk, self.storage.ledger_dir)
        if found is None:
            raise click.ClickException(
                f"{self.storage.ledger_dir}/{NAME} is missing: the next start rebuilds it from the entry logs"
            )
        return found

    def known_manifest(self) -> tuple[Manifest | None, str | None]:
        """The manifest, and if there is none that can be read, why."""
        try:
            return self.manifest(), None
        except (click.ClickException, BookKeeperError) as error:
            return None, error.message if isinstance(error, click.ClickException) else str(error)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directories' locks: no bookie runs on them meanwhile.

        Raises:
            ClickException: one runs.
        """
        locks: list[Lock] = []
        try:
            for path in (f"{self.directory}/bookie.lock", *(f"{each}/{LOCK}" for each in self.data_directories)):
                try:
                    locks.append(self.disk.lock(path))
                except BlockingIOError:
                    raise click.ClickException(
                        f"a bookie runs on {os.path.dirname(path)}: stop it first (nothing was changed)"
                    ) from None
            yield
        finally:
            for lock in locks:
                lock.release()


def find_stopped(directory: str, path: str | None, **places: str | None) -> StoppedBookie:
    """The bookie in a directory.

    Args:
        path: its TOML file, if it has one.
        places: ``journal_dir`` and ``ledger_dir``, if they lie elsewhere.

    Raises:
        ClickException: the directories do not hold a bookie's files.
        ConfigError: the TOML file cannot be used.
    """
    found = StoppedBookie(
        os.path.abspath(directory), load_storage_config(path, directory, **places), system_seams().disk
    )
    for each in found.data_directories:
        if not found.disk.exists(each):
            raise click.ClickException(f"there are no files of a bookie: {each} does not exist")
    return found


def stopped_bookie(function: F) -> F:
    """``--dir``, ``--journal-dir``, ``--ledger-dir``, ``--config``; the command gets a :class:`StoppedBookie` first.

    The command ends with a sentence if the directories do not hold a bookie's files.
    """

    @click.option("--dir", "--directory", "directory", required=True, metavar="DIR", help="The bookie's directory.")
    @click.option("--journal-dir", metavar="DIR", help="Directory of its journal.  [default: DIR/journal]")
    @click.option("--ledger-dir", metavar="DIR", help="Directory of its entry logs.  [default: DIR/ledgers]")
    @click.option("--config", "path", metavar="FILE", help="Its TOML file, which may name the directories.")
    @wraps(function)
    def command(
        directory: str, journal_dir: str | None, ledger_dir: str | None, path: str | None, **options: Any
    ) -> Any:
        return function(find_stopped(directory, path, journal_dir=journal_dir, ledger_dir=ledger_dir), **options)

    return command  # type: ignore[return-value]
