from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from bookkeeper.testing.certificates import Authority
from spark_wal.der import certificates_of, private_key_of
from spark_wal.key_stores import key_store, trust_store
from spark_wal.secret import Secret

keytool = shutil.which("keytool")
pytestmark = pytest.mark.skipif(keytool is None, reason="no keytool")

PASSWORD = "changeit"


def run(*arguments: str) -> str:
    assert keytool is not None
    done = subprocess.run([keytool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_java_reads_the_trust_store(tmp_path: Path) -> None:
    certificates = certificates_of(Path(Authority(tmp_path).server("s").cert).read_bytes())
    path = tmp_path / "trust.jks"
    path.write_bytes(trust_store(certificates, Secret(PASSWORD), 0))
    listed = run("-list", "-keystore", str(path), "-storepass", PASSWORD)
    assert listed.count("trustedCertEntry") == 2


def test_java_gets_the_key_out_of_the_key_store(tmp_path: Path) -> None:
    client = Authority(tmp_path).client("alice")
    key, chain = private_key_of(Path(client.key).read_bytes()), certificates_of(Path(client.cert).read_bytes())
    source, target = tmp_path / "client.jks", tmp_path / "converted.p12"
    source.write_bytes(key_store(key, chain, Secret(PASSWORD), 0))
    both = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD, "-deststoretype", "PKCS12")
    run("-importkeystore", "-srckeystore", str(source), "-destkeystore", str(target), *both)
    found, certificate, more = pkcs12.load_key_and_certificates(target.read_bytes(), PASSWORD.encode())
    assert found is not None
    assert certificate is not None
    encoding = serialization.Encoding.DER
    plain = found.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    assert plain == key
    assert [c.public_bytes(encoding) for c in (certificate, *more)] == chain


def test_another_password_does_not_open_it(tmp_path: Path) -> None:
    path = tmp_path / "trust.jks"
    path.write_bytes(trust_store([], Secret(PASSWORD), 0))
    with pytest.raises(AssertionError, match="password was incorrect"):
        run("-list", "-keystore", str(path), "-storepass", "another")
