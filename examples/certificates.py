"""Throw-away certificates for demos, tests and experiments: an authority, and what it signs, as PEM and as PKCS12.

Needs the package ``cryptography`` (extra ``test``). Keys lie unencrypted on disk: never use them for anything real.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PASSWORD: Final = "secret"
"""Of every PKCS12 file made here."""

LOOPBACK: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate, its key and its chain, as files."""

    cert: str
    """PEM, followed by the authority's."""
    key: str
    """PEM, PKCS8, no password."""
    pkcs12: str
    """Key, certificate and chain."""
    password_file: str
    """Holds the password of ``pkcs12``."""


class Authority:
    """A certificate authority with its files in a directory (made if it is not there)."""

    def __init__(self, directory: Path | str, name: str = "throw-away authority") -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name, ())
        self._certificate = (
            _builder(subject, subject, self._key, *_lifetime(0, 365))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = self._write("ca.pem", self._certificate.public_bytes(serialization.Encoding.PEM))
        """PEM: the authority's certificate; what the other side trusts."""
        self.password_file = self._write("password", PASSWORD.encode())
        """Holds the password of every PKCS12 file made here."""
        trusted = pkcs12.PKCS12Certificate(self._certificate, b"authority")
        self.truststore = self._write("ca.p12", pkcs12.serialize_java_truststore([trusted], _encrypted()))
        """PKCS12: the same, as Java trusts it."""

    def server(
        self,
        name: str = "bookie",
        *,
        hosts: Sequence[str] = LOOPBACK,
        uris: Sequence[str] = (),
        from_days: float = 0,
        days: float = 30,
    ) -> Certificate:
        """A server's certificate for ``hosts`` (names and addresses), good ``days`` days from ``from_days`` on.

        Asked for again with the same ``name`` it replaces its files: that is how certificates are renewed.
        """
        names = [*map(_host, hosts), *map(x509.UniformResourceIdentifier, uris)]
        lifetime = _lifetime(from_days, days)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(name, _name(name, ()), names, usages, lifetime)

    def client(
        self,
        name: str = "client",
        *,
        units: Sequence[str] = (),
        uris: Sequence[str] = (),
        mails: Sequence[str] = (),
        from_days: float = 0,
        days: float = 30,
    ) -> Certificate:
        """A client's certificate with the common name ``name`` and, say, the organisational unit ``0:role1,role2``."""
        names = [*map(x509.UniformResourceIdentifier, uris), *map(x509.RFC822Name, mails)]
        lifetime = _lifetime(from_days, days)
        return self._issue(name, _name(name, units), names, [ExtendedKeyUsageOID.CLIENT_AUTH], lifetime)

    def revocations(self, *revoked: Certificate, days: float = 1, file: str = "crl.pem") -> str:
        """A list (PEM) of certificates of ours that are no longer good; it ends ``days`` days from now."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._certificate.subject)
            .last_update(min(now, now + timedelta(days=days)) - timedelta(minutes=5))
            .next_update(now + timedelta(days=days))
        )
        for shown in revoked:
            serial = x509.load_pem_x509_certificate(Path(shown.cert).read_bytes()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            builder = builder.add_revoked_certificate(entry)
        signed = builder.sign(self._key, hashes.SHA256())
        return self._write(file, signed.public_bytes(serialization.Encoding.PEM))

    def sign_authority(self, other: Authority) -> str:
        """A certificate (PEM) for the key and the name of another authority, which this one vouches for."""
        shown = other._certificate
        signed = (
            _builder(shown.subject, self._certificate.subject, other._key, *_lifetime(0, 365))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return signed.public_bytes(serialization.Encoding.PEM).decode()

    def _issue(
        self,
        file: str,
        subject: x509.Name,
        names: Sequence[x509.GeneralName],
        usages: Sequence[x509.ObjectIdentifier],
        lifetime: tuple[datetime, datetime],
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key, *lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        chain = certificate.public_bytes(pem) + self._certificate.public_bytes(pem)
        plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        bundle = pkcs12.serialize_key_and_certificates(
            file.encode(), key, certificate, [self._certificate], _encrypted()
        )
        return Certificate(
            cert=self._write(f"{file}.pem", chain),
            key=self._write(f"{file}.key", plain),
            pkcs12=self._write(f"{file}.p12", bundle),
            password_file=self.password_file,
        )

    def _write(self, name: str, data: bytes) -> str:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        return str(path)


def _name(common: str, units: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in units]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _lifetime(from_days: float, days: float) -> tuple[datetime, datetime]:
    begin = datetime.now(UTC) + timedelta(days=from_days)
    return begin - timedelta(minutes=5), begin + timedelta(days=days)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _encrypted() -> serialization.KeySerializationEncryption:
    return serialization.BestAvailableEncryption(PASSWORD.encode())
