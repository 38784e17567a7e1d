"""``bk bookie``: one bookie in the foreground, until SIGTERM or SIGINT.

Exit codes: 0 stopped cleanly; 74 the disk failed; 75 the metadata store does not answer; 78 the configuration or
the directory is not right; 1 anything else.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from bookkeeper import real
from bookkeeper.bookie.config import BookieConfig, config_from, load_config
from bookkeeper.bookie.http_api_config import http_api_options
from bookkeeper.bookie.process import EXIT_CONFIG, EXIT_DISK, EXIT_METADATA, serve
from bookkeeper.errors import (
    ConfigError,
    CookieError,
    DirectoryLockedError,
    MetadataError,
    MetadataUnavailableError,
    StorageError,
    in_words,
)
from bookkeeper.ids import Address, is_loopback
from bookkeeper.net.tls import MODES
from bookkeeper.option_types import AnyNumber, WholeNumber
from bookkeeper.program_log import begin_log, log_option
from bookkeeper.real.unix_socket import listen_unix

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: Final = (
    click.option(
        "--metadata",
        "-m",
        "metadata_uri",
        envvar="BK_METADATA",
        metavar="URI",
        help="The cluster: sqlite:///FILE, zk://HOST:PORT/ledgers. [env: BK_METADATA]",
    ),
    click.option(
        "--dir", "--directory", "directory", metavar="DIR", help="Directory of the bookie's identity and data."
    ),
    click.option(
        "--ledger-dir",
        "ledger_dirs",
        multiple=True,
        metavar="DIR",
        help="A directory for ledgers; give it once for each disk, and the bookie outlives a disk that fails.  "
        "[default: one, DIR/ledgers]",
    ),
    click.option(
        "--journal-dir",
        "journal_dirs",
        multiple=True,
        metavar="DIR",
        help="Directory of its journal, for instance on another disk; with --ledger-dir once for each of them.  "
        "[default: DIR/journal; the ledger directory]",
    ),
    click.option(
        "--listen", metavar="HOST:PORT", help="With port 0 the first start chooses a port.  [default: 127.0.0.1:0]"
    ),
    click.option("--port", type=WholeNumber(0, 65535), metavar="PORT", help="Short for --listen 127.0.0.1:PORT."),
    click.option(
        "--advertise", metavar="HOST:PORT", help="Address under which clients reach it.  [default: where it listens]"
    ),
    click.option(
        "--bookie-id", metavar="ID", help="Its id, which never changes.  [default: the address of its first start]"
    ),
    click.option(
        "--http",
        "http_listen",
        metavar="HOST:PORT",
        help="Port of /healthz, /livez, /readyz and /metrics.  [default: 127.0.0.1:0]",
    ),
    click.option(
        "--http-insecure",
        is_flag=True,
        default=None,
        help="Allow --http beyond loopback: these pages change nothing. The port for data is not affected.",
    ),
    click.option(
        "--http-api",
        metavar="HOST:PORT",
        help="Serve Apache's HTTP administration API at this address; it needs --http-token-file.  [default: nowhere]",
    ),
    click.option(
        "--http-token-file",
        metavar="FILE",
        help="With --http-api: the file of tokens that `bk gateway token` writes; all but health and metrics needs "
        "one.",
    ),
    click.option(
        "--http-actions",
        metavar="ACTION,...",
        help="With --http-api: which routes that change something are on, such as delete-ledger; all: every one.  "
        "[default: none]",
    ),
    click.option(
        "--http-tls-cert",
        metavar="FILE",
        help="With --http-api: PEM file with its certificate and chain; then it speaks TLS, and other hosts may reach "
        "it.",
    ),
    click.option(
        "--http-tls-key", metavar="FILE", help="PEM file with its private key.  [default: the file of --http-tls-cert]"
    ),
    click.option(
        "--metadata-session",
        "metadata_session_s",
        type=AnyNumber(),
        envvar="BK_METADATA_SESSION",
        metavar="SECONDS",
        help="Time without contact after which it is no longer listed; ZooKeeper's servers have limits of their own.  "
        "[env: BK_METADATA_SESSION; default: 10]",
    ),
    click.option(
        "--config",
        "path",
        type=click.Path(dir_okay=False),
        help="A TOML file; options on the command line replace its options.",
    ),
    click.option("--tls-cert", metavar="FILE", help="PEM file with its certificate and chain. Switches TLS on."),
    click.option("--tls-key", metavar="FILE", help="PEM file with the private key.  [default: the file of --tls-cert]"),
    click.option(
        "--tls-client-ca", metavar="FILE", help="PEM file with the authorities of clients; other clients are refused."
    ),
    click.option(
        "--tls-mode", type=click.Choice(MODES), help="Whether connections without TLS are refused.  [default: required]"
    ),
    click.option(
        "--insecure",
        is_flag=True,
        default=None,
        help="Allow to listen beyond loopback without encryption and authentication.",
    ),
    click.option(
        "--allow-root",
        is_flag=True,
        default=None,
        help="Run as root although other machines reach it; a user of its own is safer.",
    ),
    click.option(
        "--autorecovery",
        is_flag=True,
        default=None,
        help="Find and repair under-replicated ledgers, too, in this process.",
    ),
    click.option("--read-only", is_flag=True, default=None, help="Take no new entries, for instance before a drain."),
)
"""What a bookie may be told on the command line, besides its log."""


def bookie_options(function: F) -> F:
    """Every setting that a bookie takes on the command line; :func:`config_of` makes its settings of them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def settings_given(
    port: int | None, ledger_dirs: tuple[str, ...], journal_dirs: tuple[str, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """The settings that the options of :func:`bookie_options` stand for, as a TOML file has them.

    Raises:
        ConfigError: two of them contradict each other.
    """
    tls = {name: options.pop(f"tls_{name}") for name in ("cert", "key", "client_ca", "mode")}
    api = {key: options.pop(name) for key, name in _API.items()}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if port is not None:
        if "listen" in given:
            raise ConfigError("give --listen or --port, not both")
        given["listen"] = f"127.0.0.1:{port}"
    given.update(_places(ledger_dirs, journal_dirs))
    if any(tls.values()):
        given["tls"] = {name: value for name, value in tls.items() if value is not None}
    if any(api.values()):
        given["http_api"] = http_api_options(**api)
    return given


def config_of(path: str | None, given: Mapping[str, Any]) -> BookieConfig:
    """A bookie's settings by its file, if there is one, and the command line. Raises: ConfigError: they are wrong."""
    _require_least(path, given)
    return load_config(path, **given) if path else config_from(given)


@click.command()
@bookie_options
@log_option
@click.option("--verbose", is_flag=True, help="Log ordinary events, too, not only warnings.")
def bookie(
    path: str | None,
    verbose: bool,
    port: int | None,
    ledger_dirs: tuple[str, ...],
    journal_dirs: tuple[str, ...],
    **options: str | bool | float | None,
) -> None:
    """Run a bookie in the foreground. It prints its id and address, and stops on Ctrl-C or SIGTERM."""
    begin_log(logging.INFO if verbose else logging.WARNING)
    try:
        config = config_of(path, settings_given(port, ledger_dirs, journal_dirs, dict(options)))
        _require_user(config, os.geteuid())
        if problem := config.storage.reserve_problem():
            log.warning("%s", problem)
        real.keep_freed_memory()
        real.allow_descriptors()
        if config.needs_secrets or real.names_secrets(os.environ):
            real.no_core_dumps()
        supervisor = real.NotifySocket.of_this_process()
        code = real.run(serve(config, real.system_seams(), real.give_back_freed_memory, listen_unix, supervisor))
    except (ConfigError, CookieError, DirectoryLockedError) as error:
        click.echo(f"bk: {error}", err=True)
        code = EXIT_CONFIG
    except MetadataUnavailableError as error:
        click.echo(f"bk: the metadata store does not answer: {error}; start the bookie again later", err=True)
        code = EXIT_METADATA
    except (MetadataError, StorageError, OSError) as error:
        click.echo(f"bk: {in_words(error)}{_remedy(error)}", err=True)
        code = EXIT_DISK if isinstance(error, StorageError) else EXIT_CONFIG if isinstance(error, _NO_PLACE) else 1
    sys.exit(code)


_API: Final = {
    "listen": "http_api",
    "token_file": "http_token_file",
    "actions": "http_actions",
    "tls_cert": "http_tls_cert",
    "tls_key": "http_tls_key",
}
"""The settings of the HTTP API, and the options with which they are given."""

ROOT: Final = 0


def _require_user(config: BookieConfig, user: int) -> None:
    """Refuse to run as root where other machines reach the bookie, unless it is allowed. Raises: ConfigError."""
    if user != ROOT or is_loopback(Address.parse(config.listen).host):
        return
    if config.allow_root:
        log.warning("this bookie runs as root; a user of its own can do less harm, and is enough")
        return
    raise ConfigError(
        f"a bookie that other machines reach ({config.listen}) does not run as root: start it as a user of its own, "
        "who owns its directories (deploy/systemd does so), or give --allow-root (allow_root = true), as in a "
        "container that has no other user"
    )


_NO_PLACE: Final = (NotADirectoryError, FileExistsError, FileNotFoundError, PermissionError)
"""Errors of a directory that a bookie cannot have: to start it again does not help."""


def _require_least(path: str | None, given: Mapping[str, object]) -> None:
    """Without a file, name the options that are missing as they are typed. Raises: ConfigError."""
    needed = {"metadata_uri": "--metadata URI", "directory": "--dir DIR"}
    missing = [name for name in needed if not given.get(name)]
    if missing and path is None:
        flags = " and ".join(needed[name] for name in missing)
        raise ConfigError(f"a bookie needs {flags}, or {' and '.join(missing)} in a --config FILE")


def _remedy(error: BaseException) -> str:
    """What helps when a disk takes no bytes."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ". Nothing is lost: make room on this disk, and start the bookie again"
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return ". A bookie writes to its directories: mount this file system writable, and start the bookie again"
    return ""


def _places(ledger_dirs: tuple[str, ...], journal_dirs: tuple[str, ...]) -> dict[str, object]:
    """The options of a configuration for these directories."""
    if ledger_dirs:
        return {"ledger_dirs": ledger_dirs, **({"journal_dirs": journal_dirs} if journal_dirs else {})}
    if len(journal_dirs) > 1:
        raise ConfigError("several --journal-dir need as many --ledger-dir")
    return {"storage": {"journal_dir": journal_dirs[0]}} if journal_dirs else {}
