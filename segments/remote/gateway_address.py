"""``grpc://HOST:PORT,HOST:PORT``: where gateways are, and how they are reached. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.ids import Address, is_loopback
from bookkeeper.secret import Secret, without_secrets
from segments.arguments import GATEWAY_SCHEMES, check_address
from segments.errors import StreamConfigError

"""The second one is with TLS."""

KEY_IN_PEM: Final = b"PRIVATE KEY-----"
"""In a file of a certificate: its key is in it, too."""

ReadFile = Callable[[str], bytes]
"""Returns what a file holds. Raises OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCredentials:
    """What a client shows to a gateway. Files are PEM."""

    tls: bool = False
    """Encrypt. Implied by the other fields but the token."""
    ca: bytes | None = None
    """The authority that signed the gateway's certificate; None: the public ones."""
    certificate: bytes | None = None
    """The client's certificate and its chain, for a gateway that asks for one."""
    key: bytes | None = field(default=None, repr=False)
    """The client's private key."""
    token: Secret | None = None
    """A token of ``bk gateway token``."""

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.tls or self.ca is not None or self.certificate is not None

    def require_protected(self, address: str) -> None:
        """Check that a token would not cross a network in clear, where anybody could read and use it.

        Raises:
            StreamConfigError: it would.
        """
        if self.token is not None and not self.is_encrypted and not is_loopback(address.rpartition(":")[0].strip("[]")):
            raise StreamConfigError(
                f"a token is not sent to another host ({address}) without TLS: give the address of the gateways with "
                "grpcs://"
            )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], read: ReadFile, read_private: ReadFile
    ) -> GatewayCredentials:
        """The access that the environment names: BK_TLS_CA, BK_TLS_CERT, BK_TLS_KEY and BK_GATEWAY_TOKEN_FILE.

        ``read_private`` reads the files that hold a secret, whatever they are called.

        Raises:
            OSError: a file cannot be read. ConfigError: others may read one that holds a secret.
        """

        def file(name: str, read: ReadFile) -> bytes | None:
            path = environment.get(name)
            return read(path) if path else None

        token = file("BK_GATEWAY_TOKEN_FILE", read_private)
        key = file("BK_TLS_KEY", read_private)
        certificate = file("BK_TLS_CERT", read)
        if certificate is not None and key is None and KEY_IN_PEM in certificate:
            certificate = key = file("BK_TLS_CERT", read_private)
        return cls(
            ca=file("BK_TLS_CA", read),
            certificate=certificate,
            key=key,
            token=None if token is None else Secret(token.decode("ascii", "replace").strip()),
        )


@dataclass(frozen=True, slots=True)
class GatewayAddresses:
    """The gateways of one namespace. Any of them serves any stream, or says which one does."""

    addresses: tuple[str, ...]
    tls: bool

    @classmethod
    def parse(cls, uri: str) -> GatewayAddresses:
        """Read ``grpc://HOST:PORT[,HOST:PORT...]``, or ``grpcs://``.

        Raises:
            StreamConfigError: it is none.
        """
        check_address(uri)
        scheme = next((each for each in GATEWAY_SCHEMES if uri.startswith(each)), None)
        text = "" if scheme is None else uri[len(scheme) :].rstrip("/")
        try:
            addresses = tuple(str(Address.parse(each)) for each in text.split(","))
        except ValueError as error:
            raise StreamConfigError(
                f"{without_secrets(uri)!r} is no address of gateways: give grpc://HOST:PORT, or several with commas "
                "between them"
            ) from error
        return cls(addresses, scheme == "grpcs://")
