"""The settings and files that a Spark session needs to reach a gateway by TLS and with a token.

Stock Hadoop needs Java key stores and an ``ssl-client.xml`` on the class path (Spark 3.5 takes nothing else). Secrets
are in files that only their owner may read. The docstring of :func:`write_settings` names the one exception, where a
stock client takes a secret only from a setting.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import socket
import ssl
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from bookkeeper.errors import ConfigError, in_words, require
from bookkeeper.install import how_to_install
from bookkeeper.real import read_private
from bookkeeper.secret import Secret
from spark_wal.gateway_location import GatewayLocation
from spark_wal.hadoop_tokens import KIND_PLAIN, KIND_TLS, HadoopToken, token_file

_OAUTH2: Final = "dfs.webhdfs.oauth2"
_PROVIDER: Final = "org.apache.hadoop.hdfs.web.oauth2.ConfCredentialBasedAccessTokenProvider"

_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""The files in which systems keep the public authorities."""

_FILES: Final = (
    "gateway-ca.p12",
    "gateway-client.p12",
    "jvm-ca.p12",
    "ssl-client.xml",
    "__spark_hadoop_conf__.xml",
    "gateway.token",
)
"""The names of all files that may be written here."""

_PLAIN_PATH: Final = re.compile(r"[\w/.+@=~-]+")

REDACTED: Final = "(?i)secret|password|passwd|token|credential|access[.]?key|account[.]?key"
"""The pattern of settings that Spark hides in its UI and event log: its own, and OAuth2's credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAccess:
    """How a client reaches a protected gateway. Paths are PEM files."""

    ca: str | None = None
    """The authority that signed the gateway's certificate. None: the public authorities."""
    certificate: str | None = None
    """The client's certificate and its chain, for a gateway that asks for one."""
    key: str | None = None
    """The client's private key, without a password. None: it is in ``certificate``."""
    token: Secret | None = None
    """What ``bk gateway token`` printed (:func:`spark_wal.read_secret` reads it from a file)."""
    client_id: str | None = None
    """The name that the token was made for. With it Spark fetches access tokens by OAuth2 (4.0 and later). None: the
    token itself goes with every request, as Hadoop's delegation token."""
    executor_token_file: str | None = None
    """Where each executor's machine has a copy of ``driver/gateway.token``, which its user alone may read. Then the
    token is in no environment. Stock Spark cannot bring it there: an executor logs in before it gets files."""

    def __post_init__(self) -> None:
        require(self.key is None or self.certificate is not None, "a key must be given together with a certificate")
        require(self.client_id is None or self.token is not None, "client_id must be given together with a token")
        there = self.executor_token_file
        require(
            there is None or (self.token is not None and self.client_id is None),
            "executor_token_file is for a token without client_id",
        )
        require(
            there is None or (there.startswith("/") and _PLAIN_PATH.fullmatch(there) is not None),
            f"executor_token_file is an absolute path that can stand in Java's options (letters, digits and "
            f"/._+@=~-), not {there}",
        )


@dataclass(slots=True)
class SparkAccess:
    """Settings, and the Java options of driver and executors."""

    conf: dict[str, str] = field(default_factory=dict)
    driver_options: list[str] = field(default_factory=list)
    executor_options: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """The files that were written."""


def write_settings(
    access: GatewayAccess, place: GatewayLocation, directory: Path, *, spark_version: tuple[int, int]
) -> SparkAccess:
    """Write the files into ``directory`` (made with mode 0700), and return the settings that Spark needs.

    The driver uses them where they are. Executors get copies through ``spark.files``, so their machines need no files.
    Everybody who may read the files of a Spark application may read the client's key. Secrets are in these files, with
    one exception that stock Spark requires: a token without ``client_id`` reaches executors as
    ``spark.executorEnv.HADOOP_TOKEN``, which users of the driver's machine can see in the list of processes, unless
    ``executor_token_file`` says where it is on theirs.

    Raises:
        ConfigError: a file cannot be used, or this Spark does not support it. OSError: a file cannot be written.
    """
    if (access.ca or access.certificate) and importlib.util.find_spec("cryptography") is None:
        raise ConfigError(f"Java's key stores need the package cryptography: {how_to_install('spark')}")
    _require_protected(access.token, place)
    if not _PLAIN_PATH.fullmatch(str(directory)):
        raise ConfigError(
            f"the path {directory} cannot stand in Java's options and in lists of files: choose a directory whose path "
            "has letters, digits and /._+@=~- only"
        )
    result = SparkAccess()
    driver, shipped = directory / "driver", directory / "shipped"
    for made in (directory, driver, shipped):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_ours(made)
    if access.client_id is not None and spark_version < (4, 0):
        raise ConfigError(
            "Spark 3.5 cannot use OAuth2, because its HTTP library is older than its Hadoop client needs: "
            "leave client_id out, and the token goes with every request"
        )
    if access.client_id is not None and place.name is not None:
        raise ConfigError(
            "Hadoop's client gets its OAuth2 tokens at one address only, so several gateways would end with the one "
            "at that address: leave client_id out, and the token goes with every request"
        )
    if place.tls:
        _write_stores(access, driver, shipped, result)
    elif access.ca or access.certificate:
        raise ConfigError("ca and certificate are for a gateway with TLS: give its address as https://HOST:PORT")
    if access.client_id is not None:
        _write_oauth2(access, place, driver, shipped, result)
    elif access.token is not None:
        _write_token(access.token, access.executor_token_file, place, driver, result)
    _remove_others(result.files, driver, shipped)
    if names := sorted(path.name for path in result.files if path.parent == shipped):
        result.conf["spark.files"] = ",".join(str(shipped / name) for name in names)
        result.conf["spark.executor.extraClassPath"] = "."
    result.conf["spark.driver.extraClassPath"] = str(driver)
    result.conf["spark.redaction.regex"] = REDACTED
    return result


def _write_stores(access: GatewayAccess, driver: Path, shipped: Path, result: SparkAccess) -> None:
    """Write the trust store, and the key store for mutual TLS, with an ``ssl-client.xml`` for driver and executors."""
    stores: dict[str, str] = {}
    if access.ca is not None:
        _write(shipped / "gateway-ca.p12", _trust_store(access.ca), result)
        stores["ssl.client.truststore.location"] = "gateway-ca.p12"
        stores["ssl.client.truststore.type"] = "pkcs12"
    if access.certificate is not None:
        key, password = access.key or access.certificate, Secret(secrets.token_hex(16))
        _write(shipped / "gateway-client.p12", _key_store(access.certificate, key, password), result)
        stores["ssl.client.keystore.location"] = "gateway-client.p12"
        stores["ssl.client.keystore.password"] = password.reveal()
        stores["ssl.client.keystore.keypassword"] = password.reveal()
        stores["ssl.client.keystore.type"] = "pkcs12"
        result.conf["spark.hadoop.hadoop.ssl.require.client.cert"] = "true"
    if stores:
        _write(shipped / "ssl-client.xml", _xml(stores), result)
        absolute = {name: str(shipped / v) if name.endswith(".location") else v for name, v in stores.items()}
        _write(driver / "ssl-client.xml", _xml(absolute), result)


def _write_oauth2(
    access: GatewayAccess, place: GatewayLocation, driver: Path, shipped: Path, result: SparkAccess
) -> None:
    """Set up OAuth2. Its library uses only the JVM's own trust store, so that store gets the authority."""
    assert access.client_id is not None and access.token is not None
    fields = {
        "enabled": "true",
        "access.token.provider": _PROVIDER,
        "client.id": access.client_id,
        "refresh.url": f"{place.url}/oauth2/token",
    }
    result.conf |= {f"spark.hadoop.{_OAUTH2}.{name}": value for name, value in fields.items()}
    # Spark adds this file from its class path to its Hadoop settings, so the secret is on no command line.
    _write(driver / "__spark_hadoop_conf__.xml", _xml({f"{_OAUTH2}.credential": access.token.reveal()}), result)
    if access.ca is not None:
        name = "jvm-ca.p12"
        _write(shipped / name, _trust_store(access.ca, _public()), result)
        result.driver_options += [f"-Djavax.net.ssl.trustStore={shipped / name}"]
        result.executor_options += [f"-Djavax.net.ssl.trustStore={name}"]


def _write_token(token: Secret, there: str | None, place: GatewayLocation, driver: Path, result: SparkAccess) -> None:
    """Write a token for each service by which a client looks for it."""
    kind = KIND_TLS if place.tls else KIND_PLAIN
    tokens = [HadoopToken("spark", token, service, kind) for service in _services(place)]
    _write(driver / "gateway.token", token_file(tokens), result)
    result.driver_options.append(f"-Dhadoop.token.files={driver / 'gateway.token'}")
    if there is not None:
        result.executor_options.append(f"-Dhadoop.token.files={there}")
        return
    result.conf["spark.executorEnv.HADOOP_TOKEN"] = ",".join(t.url_string().reveal() for t in tokens)


def _services(place: GatewayLocation) -> list[str]:
    """Under what Hadoop's client looks for a token: the name of several gateways, or each address of one's host."""
    if place.name is not None:
        return [f"ha-{place.scheme}:{place.name}"]
    (address,) = place.addresses
    try:
        found = socket.getaddrinfo(address.host, address.port, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            f"a token is bound to the gateway's address, and the name {address.host} has no address here: "
            f"{in_words(error)}"
        ) from None
    return sorted({f"{where[0]}:{address.port}" for *_, where in found})


def _trust_store(ca: str, public: Sequence[bytes] = ()) -> bytes:
    from spark_wal.key_stores import trust_store

    try:
        return trust_store(Path(ca).read_bytes(), public)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{ca} cannot be used as a PEM file of certificates: {in_words(error, beside=str(ca))}"
        ) from error


def _key_store(certificate: str, key: str, password: Secret) -> bytes:
    from spark_wal.key_stores import key_store

    try:
        return key_store(Path(certificate).read_bytes(), read_private(key), password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{certificate}, {key}: not a certificate and its private key in PEM: {in_words(error)}"
        ) from error


def _public() -> list[bytes]:
    """The public authorities of this system (DER). A JVM with our trust store still needs them."""
    paths = ssl.get_default_verify_paths()
    for path in (paths.cafile, *_BUNDLES):
        if path is not None and os.path.isfile(path):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cafile=path)
            return context.get_ca_certs(binary_form=True)
    return []


def _xml(settings: Mapping[str, str]) -> bytes:
    """Write a file of Hadoop's settings."""
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""]).encode()


def _require_protected(token: Secret | None, place: GatewayLocation) -> None:
    """Refuse to send a token across a network without TLS, where anybody could read it."""
    from bookkeeper.ids import is_loopback

    for address in place.addresses:
        if token is not None and not place.tls and not is_loopback(address.host):
            raise ConfigError(f"a token is not sent to another host without TLS: give the address as https://{address}")


def _require_ours(directory: Path) -> None:
    """Refuse a directory that others may write. They could change whom Spark trusts, and the classes that it loads.

    Raises:
        ConfigError: the directory belongs to somebody else, or others may write into it.
    """
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ConfigError(f"the directory {directory} must belong to the user who runs this; it does not")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"others may write into {directory}, which is on Spark's class path: chmod 700 {directory}")


def _remove_others(written: Sequence[Path], driver: Path, shipped: Path) -> None:
    """Remove the files of earlier settings. Otherwise Spark would still use them, or ship them together with a key."""
    for directory in (driver, shipped):
        for name in _FILES:
            if directory / name not in written:
                (directory / name).unlink(missing_ok=True)


def _write(path: Path, data: bytes, result: SparkAccess) -> None:
    """Replace a file that nobody else may read."""
    result.files.append(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
