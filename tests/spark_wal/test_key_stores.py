from __future__ import annotations

import logging
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from bookkeeper.secret import Secret
from examples.certificates import Authority
from spark_wal.key_stores import key_store, trust_store

keytool = shutil.which("keytool")
needs_keytool = pytest.mark.skipif(keytool is None, reason="no keytool")

PASSWORD = Secret("a password")


def run(*arguments: str) -> str:
    assert keytool is not None
    done = subprocess.run([keytool, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout
    return done.stdout


@needs_keytool
def test_java_trusts_what_is_in_the_trust_store_and_asks_for_no_password(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    path = tmp_path / "trust.p12"
    path.write_bytes(trust_store(Path(ours.ca).read_bytes(), [der(other.ca)]))
    for kind in ("pkcs12", "jks"):  # Java tells them apart by themselves; older Javas take JKS to be the default
        listed = run("-list", "-keystore", str(path), "-storetype", kind)
        assert listed.count("trustedCertEntry") == 2


@needs_keytool
def test_java_opens_the_key_store_with_its_password(tmp_path: Path) -> None:
    client = Authority(tmp_path).client("alice")
    path = tmp_path / "client.p12"
    path.write_bytes(key_store(Path(client.cert).read_bytes(), Path(client.key).read_bytes(), PASSWORD))
    listed = run("-list", "-v", "-keystore", str(path), "-storepass", PASSWORD.reveal())
    assert "PrivateKeyEntry" in listed
    assert "Certificate chain length: 2" in listed
    with pytest.raises(AssertionError, match="password was incorrect"):
        run("-list", "-keystore", str(path), "-storepass", "another")


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_keys_of_every_form_and_keys_beside_their_certificate(tmp_path: Path, form: PrivateFormat) -> None:
    client = Authority(tmp_path).client("alice")
    certificates = Path(client.cert).read_bytes()
    found, _, _ = pkcs12.load_key_and_certificates(Path(client.pkcs12).read_bytes(), b"secret")
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    pem = found.private_bytes(Encoding.PEM, form, NoEncryption())
    for key in (pem, certificates + pem, pem + certificates):
        kept, own, chain = pkcs12.load_key_and_certificates(
            key_store(certificates, key, PASSWORD), PASSWORD.reveal().encode()
        )
        assert isinstance(kept, ec.EllipticCurvePrivateKey)
        assert kept.private_numbers() == found.private_numbers()
        assert own is not None
        assert [own, *chain] == x509.load_pem_x509_certificates(certificates)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_key_with_a_password_is_refused(tmp_path: Path, form: PrivateFormat) -> None:
    certificates = Path(Authority(tmp_path).client().cert).read_bytes()
    locked = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"x"))
    with pytest.raises(ValueError, match=r"encrypted.*-nocrypt"):
        key_store(certificates, locked, PASSWORD)


def test_what_is_no_certificate_or_no_key_for_it_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.client("alice")
    certificates, key = Path(client.cert).read_bytes(), Path(client.key).read_bytes()
    old = dsa.generate_private_key(1024).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for text in (b"", b"nothing", key):
        with pytest.raises(ValueError, match="PEM"):
            trust_store(text)
        with pytest.raises(ValueError, match="PEM"):
            key_store(text, key, PASSWORD)
    for text in (b"", b"nothing", certificates):
        with pytest.raises(ValueError, match="PEM"):
            key_store(certificates, text, PASSWORD)
    with pytest.raises(ValueError, match="do not match"):
        key_store(certificates, Path(authority.client("bob").key).read_bytes(), PASSWORD)
    with pytest.raises(ValueError, match="cannot be used for TLS"):
        key_store(certificates, old, PASSWORD)


def test_a_public_authority_that_cannot_be_read_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    ca = Path(ours.ca).read_bytes()
    with caplog.at_level(logging.WARNING):
        assert len(trust_store(ca, [b"0\x00", der(other.ca)])) == len(trust_store(ca, [der(other.ca)]))
    assert "left out of the trust store" in caplog.text


def der(path: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(path).read_text())
