"""The directories of a bookie that does not run: options that name them, their locks, and what is in the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from bookkeeper.admin.shared.options import F
from bookkeeper.bookie.config import load_storage_config
from bookkeeper.errors import BookKeeperError
from bookkeeper.real import system_seams
from bookkeeper.seams import Disk, Lock
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.manifest import NAME, Manifest, read_manifest
from bookkeeper.storage.start.start import LOCK
from bookkeeper.volumes.disks.volume_list import VolumeEntry, VolumeList, read_volumes


@dataclass(frozen=True, slots=True)
class StoppedBookie:
    """Where a bookie's files are."""

    directory: str
    storage: StorageConfig
    disk: Disk
    volumes: tuple[VolumeEntry, ...] = ()
    """With several ledger directories: those in use; ``storage`` is one of them."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each ledger directory in use, with that of its journal."""
        found = [(each.ledger_dir, each.journal_dir) for each in self.volumes]
        return found or [(self.storage.ledger_dir, self.storage.journal_dir)]

    @property
    def data_directories(self) -> list[str]:
        """Those with journal and ledgers, of the ledger directory that was chosen."""
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


def find_stopped(directory: str, path: str | None, *, choose: bool = True, **places: str | None) -> StoppedBookie:
    """The bookie in a directory.

    Args:
        path: its TOML file, if it has one.
        choose: with several ledger directories ``ledger_dir`` must name one; else any will do.
        places: ``journal_dir`` and ``ledger_dir``, if they lie elsewhere.

    Raises:
        ClickException: the directories do not hold a bookie's files.
        ConfigError: the TOML file cannot be used.
    """
    listed = read_volumes(system_seams().disk, os.path.abspath(directory))
    if listed is not None:
        places = _one_volume(os.path.abspath(directory), listed, places, choose)
    found = StoppedBookie(
        os.path.abspath(directory),
        load_storage_config(path, directory, **places),
        system_seams().disk,
        listed.serving if listed is not None else (),
    )
    for each in found.data_directories:
        if not found.disk.exists(each):
            raise click.ClickException(f"there are no files of a bookie: {each} does not exist")
    return found


def _one_volume(
    directory: str, listed: VolumeList, places: dict[str, str | None], choose: bool
) -> dict[str, str | None]:
    """With several ledger directories: the one that was named, with its journal. One that is lost or drained is not
    offered, but may be named: perhaps its files can still be looked at.

    Raises:
        ClickException: none was named, or another one.
    """
    in_use = sorted(each.ledger_dir for each in listed.serving)
    chosen = places.get("ledger_dir")
    entry = listed.at(os.path.abspath(chosen)) if chosen is not None else None
    if chosen is None and not choose:
        entry = next(iter(listed.serving), None)
    if entry is None:
        several = "has several ledger directories" if chosen is None else f"has no ledger directory {chosen}"
        raise click.ClickException(
            f"the bookie in {directory} {several}; choose one with --ledger-dir: {', '.join(in_use)}"
        )
    return {**places, "ledger_dir": entry.ledger_dir, "journal_dir": entry.journal_dir}


def whole_bookie(function: F) -> F:
    """``--dir``, ``--journal-dir``, ``--ledger-dir``, ``--config``; as :func:`stopped_bookie`, but with several ledger
    directories none need be chosen."""
    return _found(function, choose=False)


def stopped_bookie(function: F) -> F:
    """``--dir``, ``--journal-dir``, ``--ledger-dir``, ``--config``; the command gets a :class:`StoppedBookie` first.

    The command ends with a sentence if the directories do not hold a bookie's files.
    """
    return _found(function, choose=True)


def _found(function: F, choose: bool) -> F:

    @click.option("--dir", "--directory", "directory", required=True, metavar="DIR", help="The bookie's directory.")
    @click.option("--journal-dir", metavar="DIR", help="Directory of its journal.  [default: DIR/journal]")
    @click.option("--ledger-dir", metavar="DIR", help="Directory of its entry logs.  [default: DIR/ledgers]")
    @click.option("--config", "path", metavar="FILE", help="Its TOML file, which may name the directories.")
    @wraps(function)
    def command(
        directory: str, journal_dir: str | None, ledger_dir: str | None, path: str | None, **options: Any
    ) -> Any:
        bookie = find_stopped(directory, path, choose=choose, journal_dir=journal_dir, ledger_dir=ledger_dir)
        return function(bookie, **options)

    return command  # type: ignore[return-value]
