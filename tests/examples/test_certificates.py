"""Throw-away certificates are good enough for OpenSSL and for Java's keytool."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from examples.certificates import PASSWORD, Authority


def test_openssl_takes_what_the_authority_signs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    for made in (authority.server(), authority.client(units=["0:writers"], uris=["spiffe://x/spark"])):
        context = ssl.create_default_context(cafile=authority.ca)
        context.load_cert_chain(made.cert, made.key)
        assert Path(made.key).stat().st_mode & 0o077 == 0


def test_java_reads_keys_and_trust(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("needs Java's keytool")
    authority = Authority(tmp_path)

    def listed(store: str) -> str:
        command = [keytool, "-list", "-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "trustedCertEntry" in listed(authority.truststore)
    assert "PrivateKeyEntry" in listed(authority.server().pkcs12)
