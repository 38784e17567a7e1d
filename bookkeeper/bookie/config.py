"""The settings of a bookie: one TOML file, one frozen object. An unknown option is an error that names it.

::

    metadata_uri = "zk://127.0.0.1:2181/ledgers"
    directory = "/var/lib/bookie"
    listen = "127.0.0.1:3181"

    ledger_dirs = ["/disk1", "/disk2"]  # several disks; default: one, below `directory`

    [storage]                        # see bookkeeper.storage.base.config
    journal_dir = "/fast/journal"    # default: below `directory`

    [tls]                            # see bookkeeper.net.tls.ServerTls
    cert = "/etc/bookie/cert.pem"
    key = "/etc/bookie/key.pem"
    client_ca = "/etc/bookie/clients.pem"

    [audit]                          # see bookkeeper.audit.config.AuditConfig
    to = "/var/log/bookie/audit"
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.audit import AuditConfig
from bookkeeper.auth.config import NONE, SASL, TLS, AuthConfig
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.bookie.page_address import require_page_address
from bookkeeper.codec import FRAME_MAX, RECORD_MAX
from bookkeeper.errors import ConfigError, in_words, require, require_below, require_range
from bookkeeper.ids import Address, bookie_id, is_loopback
from bookkeeper.ledger.location import Location
from bookkeeper.meta import service_uri
from bookkeeper.meta.stores import credentials
from bookkeeper.net.tls import ServerTls
from bookkeeper.settings import structure
from bookkeeper.storage.base.config import StorageConfig

MIB: Final = 1024 * 1024

INLINE_SYNC_US: Final = 500.0
"""Microseconds up to which a sync counts as fast, in a bookie with a process of its own, unless ``[storage]`` says
otherwise: about what two hand-overs between threads cost on a busy machine, besides the sync itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieConfig:
    """The settings of one bookie. Defaults stand here and nowhere else."""

    metadata_uri: str
    """Address of the cluster's metadata store; :mod:`bookkeeper.meta.service_uri` lists the forms."""

    directory: str
    """Where the bookie keeps its identity and, unless ``[storage]`` says otherwise, its data."""

    storage: StorageConfig
    """Settings of the storage; by default the data lie in ``journal`` and ``ledgers`` below ``directory``. With
    ``ledger_dirs`` each of them has these settings, and its share of the memory."""

    ledger_dirs: tuple[str, ...] = ()
    """Several directories for ledgers, each best on a disk of its own: each ledger lies on one of them, and when a disk
    fails the others serve on. Such a directory has its own journal. Instead of ``storage.ledger_dir``."""

    journal_dirs: tuple[str, ...] = ()
    """For each of ``ledger_dirs``, in their order, the directory of its journal. Default: the ledger directory."""

    listen: str = "127.0.0.1:0"
    """HOST:PORT. With port 0 the first start chooses a free port and keeps it in ``directory``.
    An address other than loopback needs ``[tls]`` with client certificates (or ``[auth]``), and, where the metadata
    are in ZooKeeper, an identity there (:mod:`bookkeeper.meta.stores.credentials`); or ``insecure``."""

    advertise: str | None = None
    """HOST:PORT under which clients reach this bookie. Default: the address at which it listens."""

    location: str | None = None
    """Where the bookie stands, as /RACK or /REGION/RACK: clients spread the copies of an entry over racks. It is kept
    in the metadata. Default: what is there (``bk bookies place``). Apache's clients ask a script of their own."""

    bookie_id: str | None = None
    """The bookie's id, which never changes. Default: the advertised HOST:PORT of its first start."""

    tls: ServerTls = field(default_factory=lambda: ServerTls(mode="off"))
    """Encryption of connections. Default: none."""

    auth: AuthConfig = field(default_factory=AuthConfig)
    """Authentication of clients. Default: by their certificates, if ``tls`` asks for them."""

    audit: AuditConfig = field(default_factory=AuditConfig)
    """Where it is noted who did what, or was refused. Default: nowhere."""

    insecure: bool = False
    """Serve beyond loopback without authentication and encryption: everyone who reaches the port may read and
    write."""

    allow_root: bool = False
    """Run as root also if other machines reach the bookie. On loopback it may anyway."""

    read_only: bool = False
    """Take no new entries. Reads, fences and recovery go on."""

    frame_max: int = FRAME_MAX
    """Bytes of the largest request, and of the largest reply."""

    in_progress_bytes: int = 64 * MIB
    """Bytes of requests that are accepted and not yet answered. Above it the bookie stops reading from sockets, then
    refuses requests."""

    reserved_bytes: int = 16 * MIB
    """Further bytes, reserved for fences and for the reads and adds of recoveries."""

    receive_bytes: int = 64 * MIB
    """Bytes of large frames that have arrived in part, over all connections. Above it such frames wait."""

    connections_max: int = 10_000
    """Connections at a time. One more is closed at once."""

    connections_per_principal_max: int = 5_000
    """How many connections one principal may have, from all addresses, where the access policy is followed."""

    connections_per_host_max: int = 1_000
    """Connections at a time from one address; of IPv6 from one network of 64 bits."""

    connection_idle_s: float = 3600.0
    """Seconds after which a connection is closed over which nothing comes and nothing is waited for. Clients make
    another one when they need it. Writers of ours show a sign of life every ten minutes, so it should be longer. A peer
    that is gone without a word is noticed within two minutes, whatever this says."""

    slow_frame_s: float = 30.0
    """Seconds that a peer may take to send the rest of a frame, or to read replies, before its connection is closed."""

    long_polls_max: int = 10_000
    """Long polls at a time. One more is answered at once."""

    long_poll_max_s: float = 60.0
    """Seconds that a long poll lasts at most, whatever the reader asked for."""

    batch_read_bytes: int = 5 * MIB
    """Bytes of a reply to a batch read at most."""

    http_listen: str | None = "127.0.0.1:0"
    """HOST:PORT of /healthz, /livez, /readyz and /metrics. An empty string switches them off. A loopback address
    unless ``http_insecure`` or ``insecure``."""

    http_insecure: bool = False
    """Show these pages beyond loopback, unencrypted, to everyone who reaches them: they change nothing, and hold no
    secret. The port for data is not affected."""

    http_api: HttpApiConfig = field(default_factory=HttpApiConfig)
    """The HTTP administration API, at an address of its own: off unless it is given one."""

    space_check_s: float = 5.0
    """Seconds between two checks of the free disk space."""

    garbage_interval_s: float = 900.0
    """Seconds between two passes that look for deleted ledgers."""

    garbage_grace_s: float = 600.0
    """Seconds between the two passes that must both find a ledger deleted before its data are dropped."""

    garbage_shrink_max: float = 0.5
    """Share of the ledgers by which the listing may shrink between two passes. A pass that finds more gone drops
    nothing."""

    completion_bytes_per_s: int = 20 * MIB
    """Bytes a second at which the bookie copies entries from others after it has lost its own. With 0 it copies
    nothing, and an operator or a repair must do it."""

    autorecovery: bool = False
    """Run an auditor's candidate and a repair worker inside this bookie. ``bk autorecovery`` runs them as a process of
    their own, with settings."""

    metadata_session_s: float = service_uri.SESSION_S
    """Seconds without contact after which the session with ZooKeeper (or a SQLite file) ends. A bookie that has died
    or hangs stays listed for this time; one that is cut off for longer must register again. ZooKeeper's servers grant
    2 to 20 of their ticks (4 to 40 s), whatever was asked for. A bookie that starts waits 5 s longer than this (at
    least 15 s) until an earlier registration of its id has gone."""

    drain_s: float = 10.0
    """Seconds that a stopping bookie waits for requests in progress."""

    def __post_init__(self) -> None:
        require(bool(self.metadata_uri), "metadata_uri is empty; it must be the address of the metadata store")
        require(bool(self.directory), "directory is empty; it must be the bookie's directory")
        if self.location is not None:
            Location.parse(self.location)
        for name in ("listen", "advertise", "http_listen"):
            if value := getattr(self, name):
                try:
                    address = Address.parse(value)
                except ValueError as error:
                    raise ConfigError(f"{name} must be HOST:PORT with a port up to 65535, not {value!r}") from error
                if name == "http_listen":
                    allowed = self.insecure or self.http_insecure
                    require_page_address("http_listen", address, allowed=allowed, option="http_insecure = true")
                elif name == "listen" and not self.insecure and not is_loopback(address.host):
                    self._require_secure(value)
        if self.bookie_id is not None:
            try:
                bookie_id(self.bookie_id)
            except ValueError as error:
                raise ConfigError(f"bookie_id: {error}") from error
        self._require_distinct_directories()
        require_range(self, "frame_max", least=1024, most=RECORD_MAX)  # a disk reads back no larger entry
        for name in ("in_progress_bytes", "reserved_bytes", "receive_bytes"):
            require_below(self, "frame_max", name, or_equal=True)
        require_range(self, "connections_per_host_max", "connections_per_principal_max", above=0)
        require_below(self, "connections_per_host_max", "connections_max", or_equal=True)
        require_range(
            self,
            "slow_frame_s",
            "connection_idle_s",
            "long_poll_max_s",
            "batch_read_bytes",
            "space_check_s",
            "garbage_interval_s",
            above=0,
        )
        require_range(self, "long_polls_max", "garbage_grace_s", "drain_s", "completion_bytes_per_s", least=0)
        require_range(self, "garbage_shrink_max", above=0, most=1)
        require_range(self, "metadata_session_s", least=service_uri.SESSION_MIN_S, most=service_uri.SESSION_MAX_S)
        self._require_authenticable()

    @property
    def volume_directories(self) -> tuple[tuple[str, str], ...]:
        """With several ledger directories: each with that of its journal; else nothing."""
        return tuple(zip(self.ledger_dirs, self.journal_dirs or self.ledger_dirs, strict=True))

    @property
    def data_directories(self) -> list[str]:
        """Every directory with journal or ledgers."""
        pairs = self.volume_directories or ((self.storage.ledger_dir, self.storage.journal_dir),)
        return list(dict.fromkeys(place for ledger_dir, journal_dir in pairs for place in (journal_dir, ledger_dir)))

    @property
    def auth_provider(self) -> str:
        """The provider of authentication that is used."""
        if self.auth.provider is None:
            return TLS if self.tls.mode != "off" and self.tls.client_ca else NONE
        return self.auth.provider

    @property
    def needs_secrets(self) -> bool:
        """Whether its process has private keys, tokens or passwords in its memory."""
        return self.tls.mode != "off" or self.auth_provider != NONE or bool(self.http_api.listen)

    def _require_distinct_directories(self) -> None:
        """Refuse ledger directories that are given twice, or do not fit to those of the journals."""
        require(
            not self.journal_dirs or len(self.journal_dirs) == len(self.ledger_dirs),
            f"journal_dirs must name a directory for each of ledger_dirs: {len(self.journal_dirs)} for "
            f"{len(self.ledger_dirs)}",
        )
        for name in ("ledger_dirs", "journal_dirs"):
            places = getattr(self, name)
            twice = next((each for at, each in enumerate(places) if each in places[:at]), None)
            require(twice is None, f"{name} names {twice} twice; each ledger directory needs its own")
            require(all(places), f"{name} has an empty name; each must be a directory")
            require(self.directory not in places, f"{name} names the bookie's own directory, {self.directory}")
        for place in self.ledger_dirs:
            other = next((each for each in self.ledger_dirs if each.startswith(f"{place}/")), None)
            require(other is None, f"ledger_dirs has {other}, which lies in {place}; take another directory")

    def _require_secure(self, value: str) -> None:
        """Refuse to serve beyond loopback without encryption and authentication, or with metadata open to everyone."""
        open_to_all = f"{value} would be open to everyone who reaches it, without authentication and encryption"
        require(
            self.tls.mode == "required" and self.auth_provider != NONE,
            f"{open_to_all}; encrypt connections and authenticate clients ([tls] cert, key, client_ca and mode = "
            '"required"; bk bookie --tls-cert, --tls-key, --tls-client-ca), or give listen a loopback address '
            "(127.0.0.1, ::1, localhost), or set insecure = true",
        )
        require(
            service_uri.parse(self.metadata_uri).scheme != "zk" or credentials.from_environment().identified,
            f"a bookie that listens at {value} needs an identity in ZooKeeper: what a session without one creates is "
            "open to everyone who reaches ZooKeeper, and the passwords of ledgers with it; set "
            f"{credentials.USER} and {credentials.PASSWORD}, or write a file that {credentials.FILE} names (user and "
            "password_file, or [tls] certificate and key), or set insecure = true",
        )

    def _require_authenticable(self) -> None:
        """Refuse the provider ``tls`` unless every client must show a certificate."""
        require(
            not self.auth.required,
            "auth.required is an option of clients; leave it out: a bookie with a provider authenticates every client",
        )
        require(
            self.auth_provider != SASL or self.tls.mode != "off" or self.auth.insecure,
            'auth.provider "sasl" needs TLS ([tls] cert, key): DIGEST-MD5 is obsolete, and protects neither passwords '
            "nor connections by itself; auth.insecure = true speaks it in clear",
        )
        if self.auth_provider == TLS:
            require(self.tls.client_ca is not None, 'auth.provider "tls" needs tls.client_ca')
            require(self.tls.mode == "required", 'auth.provider "tls" needs tls.mode = "required"')
        elif self.tls.mode != "off":
            require(
                not (self.tls.allow or self.tls.roles),
                f'tls.allow and tls.roles need auth.provider "tls", not "{self.auth_provider}"',
            )


_PLACES: Final = ("journal_dir", "ledger_dir")
_MANY_PLACES: Final = ("journal_dirs", "ledger_dirs")


def config_from(options: Mapping[str, Any]) -> BookieConfig:
    """Make a config from a mapping of options (a TOML document). Directories become absolute: the cookie holds them,
    and the bookie may be started from somewhere else next time.

    Raises:
        ConfigError: an unknown option, which it names; a value of the wrong type; options that do not fit together.
    """
    options = dict(options)
    if directory := str(options.get("directory", "")):
        options["directory"] = directory = os.path.abspath(directory)
    storage = options.get("storage", {})
    for name in _MANY_PLACES:
        if isinstance(places := options.get(name), list | tuple) and all(isinstance(each, str) for each in places):
            options[name] = [os.path.abspath(each) if each else each for each in places]
            _refuse_links(name, options[name])
    if ledger_dirs := options.get("ledger_dirs"):
        if isinstance(storage, Mapping) and (named := [name for name in _PLACES if storage.get(name)]):
            raise ConfigError(f"give ledger_dirs or storage.{named[0]}, not both")
        if isinstance(storage, Mapping) and isinstance(ledger_dirs, list):
            first = (options.get("journal_dirs") or ledger_dirs)[0]
            storage = {**storage, "ledger_dir": ledger_dirs[0], "journal_dir": first}
    elif options.get("journal_dirs"):
        raise ConfigError("journal_dirs needs ledger_dirs; the journal of one ledger directory is storage.journal_dir")
    options["storage"] = _storage_options(directory, storage)
    return structure(BookieConfig, options)


def _refuse_links(name: str, places: list[str]) -> None:
    """Refuse directories that are one under two names: neither would survive the loss of the other."""
    where: dict[str, str] = {}
    for place in filter(None, places):
        other = where.setdefault(os.path.realpath(place), place)
        require(other == place, f"{name} names one directory twice: {other} and {place} are the same")


def _storage_options(directory: str, storage: object) -> dict[str, Any]:
    """The table ``[storage]``, with the directories that it does not name."""
    if not isinstance(storage, Mapping):
        raise ConfigError("storage must be a table of options")
    told = {name: os.path.abspath(storage[name]) for name in _PLACES if isinstance(storage.get(name), str)}
    return {
        "journal_dir": f"{directory}/journal" if directory else "",
        "ledger_dir": f"{directory}/ledgers" if directory else "",
        "inline_sync_us": INLINE_SYNC_US,
        **storage,
        **{name: path for name, path in told.items() if storage[name]},
    }


def load_storage_config(path: str | None, directory: str, **places: str | None) -> StorageConfig:
    """The storage of a bookie that is not to be run: of its TOML file, if there is one, and of its directories.

    Args:
        places: ``journal_dir`` and ``ledger_dir``, if they lie elsewhere; they replace the file's.

    Raises:
        ConfigError: the file cannot be read, or an option is unknown or has a wrong value.
    """
    options = read_toml(path) if path is not None else {}
    storage = options.get("storage", {})
    given = {name: place for name, place in places.items() if place is not None}
    table = _storage_options(
        os.path.abspath(directory), {**storage, **given} if isinstance(storage, Mapping) else storage
    )
    return structure(StorageConfig, table)


def load_config(path: str, **overrides: Any) -> BookieConfig:
    """Read a TOML file. Options of the command line that are not None replace the file's.

    Raises:
        ConfigError: as :func:`config_from`; also if the file cannot be read or is not TOML.
    """
    options = read_toml(path)
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return config_from({**options, **given})
    except ConfigError as error:
        raise ConfigError(f"{path}{' and the command line' if given else ''}: {error}") from error


def read_toml(path: str) -> dict[str, Any]:
    """The options in a TOML file, as they stand there. Raises: ConfigError: it cannot be read, or is no TOML."""
    import tomllib  # a bookie that is told everything on the command line does without

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8, which TOML is") from error
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {in_words(error, beside=str(path))}") from error
