"""``bookkeeper shell``: Apache's command for operators, run to its end."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from bookkeeper.errors import BookKeeperError, MetadataError
from bookkeeper.launchers.machine_speed import stretch
from examples.apache_servers.process import java_command, run_to_end
from examples.apache_servers.settings import Settings, client_settings, write_settings

_MAIN: Final = "org.apache.bookkeeper.bookie.BookieShell"


def shell(
    *words: str,
    uri: str | None = None,
    settings: Settings | None = None,
    configuration: Path | None = None,
    timeout_s: float = 60.0,
    expect: int | None = 0,
) -> str:
    """Run one command of Apache's shell and return all that it said, its log included.

    Args:
        words: the command and its arguments: ``"listbookies", "-rw"``.
        uri: the cluster; not needed with ``configuration``.
        settings: of the configuration it is given, beside the cluster.
        configuration: a file instead: some commands are about the bookie that it describes.
        timeout_s: how long it may take on a machine of the reference's speed.
        expect: the exit status that is right; None: any.

    Raises:
        ConfigError: no Java, or Apache's jars cannot be had.
        BookKeeperError: another exit status, or too long; says what it said.
    """
    with tempfile.TemporaryDirectory(prefix="bookkeeper-shell.") as temporary:
        directory = Path(temporary)
        if configuration is None:
            assert uri is not None, "give a cluster (uri) or a configuration"
            more = {"journalDirectories": directory, "ledgerDirectories": directory, **(settings or {})}
            configuration = write_settings(directory / "bk_server.conf", client_settings(uri, more))
        command = java_command(directory, _MAIN, "-conf", str(configuration), *words)
        try:
            status, said = run_to_end(command, timeout_s * stretch())
        except subprocess.TimeoutExpired as expired:
            raise BookKeeperError(
                f"bookkeeper shell {' '.join(words)} did not end within {timeout_s * stretch():.0f} s"
            ) from expired
    if expect is not None and status != expect:
        raise BookKeeperError(f"bookkeeper shell {' '.join(words)} ended with exit status {status}: {said[-3000:]}")
    return said


def apache_init(uri: str) -> None:
    """Make a new, empty cluster with Java's ``initnewcluster``. ``bk init`` does the same from our side.

    Raises:
        ConfigError: no Java, or Apache's jars cannot be had.
        MetadataError: there is a cluster already, or ZooKeeper does not answer; says what Java said.
    """
    try:
        shell("initnewcluster", uri=uri)
    except BookKeeperError as error:
        raise MetadataError(f"Java did not make a cluster at {uri}: {error}") from error
