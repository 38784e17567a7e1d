"""This process's identity in ZooKeeper, who else may read what it writes, and how the connection is protected.

The settings come from a file that ``BK_ZOOKEEPER`` names, user and password also from ``BK_ZOOKEEPER_USER`` and
``BK_ZOOKEEPER_PASSWORD``: never from an address or a command line, which others on the machine can read::

    user = "bookkeeper"
    password_file = "/run/secrets/zookeeper"     # or password = "..."
    scheme = "digest"                            # or "sasl": DIGEST-MD5, what Java's JAAS "Client" section does
    readers = ["sasl:monitor"]                   # besides us, who may read; ZooKeeper's SCHEME:ID
    send_in_clear = false                        # true: digest credentials may leave this machine without TLS

    [tls]
    ca = "/etc/zookeeper/ca.pem"
    certificate = "/etc/zookeeper/client.pem"    # with key: our identity, if there is no user
    key = "/etc/zookeeper/client.key"
    insecure_any_host = false

* With an identity every node we create is open to its creator only, and to ``readers`` for reading: the list
  that Apache BookKeeper writes with ``zkEnableSecurity=true``.
* Digest credentials go to other machines only over TLS.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.ids import is_loopback
from bookkeeper.install import how_to_install
from bookkeeper.real.private import read_private
from bookkeeper.secret import Secret

FILE: Final = "BK_ZOOKEEPER"
USER: Final = "BK_ZOOKEEPER_USER"
PASSWORD: Final = "BK_ZOOKEEPER_PASSWORD"

Scheme = Literal["digest", "sasl"]


@dataclass(frozen=True, slots=True)
class ZooKeeperTls:
    """TLS towards ZooKeeper's servers: paths of PEM files."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    insecure_any_host: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The settings that the module describes."""

    user: str | None = None
    password: Secret | None = None
    scheme: Scheme = "digest"
    readers: tuple[tuple[str, str], ...] = ()
    send_in_clear: bool = False
    tls: ZooKeeperTls | None = None

    @property
    def identified(self) -> bool:
        """Whether there is an identity, to which the nodes that this process creates belong."""
        return self.user is not None or (self.tls is not None and self.tls.certificate is not None)

    @property
    def name(self) -> str:
        """The identity in words, for messages."""
        if self.user is not None:
            return f"{self.scheme} user {self.user}"
        return f"the certificate {self.tls.certificate}" if self.identified and self.tls else "nobody"

    def check_way(self, hosts: str) -> None:
        """Refuse to send digest credentials in clear text to another machine. Raises: ConfigError."""
        if self.user is None or self.scheme != "digest" or self.tls is not None or self.send_in_clear:
            return
        for host in hosts.split(","):
            name = host.rpartition(":")[0].strip("[]") or host
            if not is_loopback(name):
                raise ConfigError(
                    f"digest credentials for ZooKeeper would go to {name} in clear text: set [tls], use "
                    'scheme = "sasl", or set send_in_clear = true'
                )


def from_environment(environment: Mapping[str, str] | None = None) -> Credentials:
    """Read the settings from the environment. Without any, there is no identity and no TLS.

    Raises:
        ConfigError: a setting is unknown or missing, or others may read a file with a password.
    """
    environment = os.environ if environment is None else environment
    path = environment.get(FILE)
    settings = _read(path) if path else {}
    if user := environment.get(USER):
        settings["user"] = user
    if password := environment.get(PASSWORD):
        settings["password"] = password
        settings.pop("password_file", None)
    return _credentials(settings, path or "the environment")


def _read(path: str) -> dict[str, Any]:
    import tomllib  # most processes are given no file

    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
        if "password" in settings:
            settings = tomllib.loads(read_private(path).decode())
    except OSError as error:
        raise ConfigError(f"{FILE}: {in_words(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{FILE}: {path} is no text in UTF-8, which TOML is") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{FILE}: {path}: {error}") from error
    return settings


def _credentials(settings: dict[str, Any], where: str) -> Credentials:
    known = {field.name for field in fields(Credentials)} | {"password_file"}
    tls = settings.get("tls")
    if tls is not None and not isinstance(tls, dict):
        raise ConfigError(f"{where}: tls must be a section, [tls]")
    wrong = [name for name in settings if name not in known]
    wrong += [f"tls.{name}" for name in tls or () if name not in {field.name for field in fields(ZooKeeperTls)}]
    if wrong:
        raise ConfigError(f"{where}: unknown setting: {', '.join(wrong)}")
    password = settings.get("password")
    if password_file := settings.get("password_file"):
        password = _read_password(str(password_file))
    if (settings.get("user") is None) != (password is None):
        raise ConfigError(f"{where}: a user needs a password, and a password needs a user")
    scheme = settings.get("scheme", "digest")
    if scheme not in ("digest", "sasl"):
        raise ConfigError(f"{where}: scheme must be digest or sasl, not {scheme}")
    if scheme == "sasl" and importlib.util.find_spec("puresasl") is None:
        raise ConfigError(
            f'{where}: scheme = "sasl" needs the Python package pure-sasl, which is not installed: '
            f"{how_to_install('zookeeper-sasl')}"
        )
    return Credentials(
        user=settings.get("user"),
        password=None if password is None else Secret(str(password)),
        scheme=scheme,
        readers=tuple(_reader(str(reader), where) for reader in settings.get("readers", ())),
        send_in_clear=settings.get("send_in_clear") is True,
        tls=None if tls is None else _tls(tls, where),
    )


def _tls(settings: dict[str, Any], where: str) -> ZooKeeperTls:
    found = ZooKeeperTls(**settings)
    if (found.certificate is None) != (found.key is None):
        raise ConfigError(f"{where}: tls.certificate and tls.key must be given together")
    for path in (found.ca, found.certificate, found.key):
        if path is not None and not os.path.exists(path):
            raise ConfigError(f"{where}: there is no file {path}")
    return found


def _reader(text: str, where: str) -> tuple[str, str]:
    scheme, colon, name = text.partition(":")
    if not colon or not scheme or not name:
        raise ConfigError(f"{where}: a reader must be SCHEME:ID as ZooKeeper writes it, not {text}")
    return scheme, name


def _read_password(path: str) -> str:
    try:
        return read_private(path).decode("utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"password_file: {in_words(error)}") from error
