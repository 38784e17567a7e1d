"""Whether a certificate that was good still is."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from bookkeeper.auth.client_trust import ClientTrust
from examples.certificates import Authority, Certificate

NOW = time.time()


def der(made: Certificate) -> bytes:
    text = Path(made.cert).read_text()
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(text[: text.index(end) + len(end)])


def der_of(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem)


def ca(authority: Authority) -> bytes:
    return der_of(Path(authority.ca).read_text())


def trust(*files: str) -> ClientTrust:
    return ClientTrust.parse("\n".join(Path(file).read_text() for file in files))


@pytest.mark.rule("X15")
def test_a_certificate_is_good_while_its_authority_is_there_and_no_list_names_it(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "a", "same name"), Authority(tmp_path / "b", "same name")
    client, other = ours.client("client"), ours.client("other")
    before = trust(ours.ca)
    assert trust(ours.ca).why_refused(der(client), before, NOW) is None
    assert trust(ours.ca, theirs.ca).why_refused(der(client), before, NOW) is None
    both = trust(ours.ca, theirs.ca)
    assert trust(ours.ca).why_refused(der(client), both, NOW) is None, "another authority was removed"
    assert "authority" in str(trust(theirs.ca).why_refused(der(client), both, NOW)), "its own, and not one of its name"
    assert "authority" in str(ClientTrust.parse("").why_refused(der(client), before, NOW))
    assert trust(ours.ca, ours.revocations(other)).why_refused(der(client), before, NOW) is None
    assert "revoked" in str(trust(ours.ca, ours.revocations(client)).why_refused(der(client), before, NOW))
    listed = trust(ours.ca, ours.revocations(other, days=1))
    assert "has ended" in str(listed.why_refused(der(client), before, NOW + 2 * 86_400))


@pytest.mark.rule("X15")
def test_an_authority_that_was_shown_counts_if_one_that_is_trusted_has_signed_it(tmp_path: Path) -> None:
    root, ours, theirs = Authority(tmp_path / "r", "root"), Authority(tmp_path / "a", "ours"), Authority(tmp_path / "b")
    client, other = ours.client("client"), theirs.client("other")
    signed = der_of(root.sign_authority(ours))
    before, now_trusted = trust(root.ca, theirs.ca), trust(root.ca)
    assert now_trusted.why_refused(der(client), before, NOW, [der(client), signed]) is None
    for chain in ([], [signed], [der(other), ca(theirs)], [ca(theirs), signed, der(client)]):
        assert "authority" in str(now_trusted.why_refused(der(other), before, NOW, chain))
    assert "authority" in str(now_trusted.why_refused(der(client), before, NOW, [ca(ours)])), "only by itself"


@pytest.mark.rule("X15", "X40")
def test_what_cannot_be_judged_is_left_to_the_next_handshake(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    assert "authority" in str(trust(theirs.ca).why_refused(b"of a form of its own", trust(ours.ca), NOW))
    broken = "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----"
    unreadable = ClientTrust.parse(Path(ours.ca).read_text() + broken)
    assert "revoked" in str(unreadable.why_refused(der(ours.client()), trust(ours.ca), NOW))
    assert ClientTrust.parse("-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----").authorities == frozenset()


@pytest.mark.rule("X15")
def test_without_the_library_a_changed_list_ends_all(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    without = ClientTrust(trust(ours.ca).authorities, frozenset({b"list"}), None)
    assert without.why_refused(b"any", without, NOW) is None
    assert "cryptography" in str(without.why_refused(b"any", trust(ours.ca), NOW))
