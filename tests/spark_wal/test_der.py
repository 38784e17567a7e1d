from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.testing.certificates import Authority
from spark_wal.der import CertificateFormatError, certificates_of, element, not_after_ms, private_key_of, sequence

Formats = serialization.PrivateFormat


@pytest.mark.parametrize("form", [Formats.PKCS8, Formats.TraditionalOpenSSL])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_keys_become_pkcs8_whatever_they_were(kind: str, form: serialization.PrivateFormat) -> None:
    key = ec.generate_private_key(ec.SECP384R1()) if kind == "ec" else rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    loaded = serialization.load_der_private_key(private_key_of(pem), None)
    assert loaded.private_numbers() == key.private_numbers()  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [Formats.PKCS8, Formats.TraditionalOpenSSL])
def test_a_key_with_a_password_is_refused(form: serialization.PrivateFormat) -> None:
    key = rsa.generate_private_key(65537, 2048)
    locked = serialization.BestAvailableEncryption(b"x")
    with pytest.raises(CertificateFormatError, match="password"):
        private_key_of(key.private_bytes(serialization.Encoding.PEM, form, locked))


def test_certificates_and_their_end(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = Path(authority.server("s", days=30_000).cert).read_bytes()
    chain = certificates_of(pem)
    assert len(chain) == 2
    for data in chain:
        assert not_after_ms(data) == x509.load_der_x509_certificate(data).not_valid_after_utc.timestamp() * 1000
    with pytest.raises(CertificateFormatError, match="BEGIN CERTIFICATE"):
        certificates_of(b"nothing")


@pytest.mark.rule("X40")
@given(st.binary(max_size=80))
def test_other_bytes_are_refused_in_one_way(data: bytes) -> None:
    for parse in (not_after_ms, element):
        try:
            parse(data)
        except CertificateFormatError:
            pass


def test_lengths_of_every_size() -> None:
    for size in (0, 127, 128, 255, 256, 70_000):
        tag, content, rest = element(sequence(bytes(size)) + b"rest")
        assert (tag, len(content), rest) == (0x30, size, b"rest")


def test_openssl_agrees(tmp_path: Path) -> None:
    """A key as OpenSSL's command writes it."""
    key = tmp_path / "key"
    command = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    assert serialization.load_der_private_key(private_key_of(key.read_bytes()), None)
