from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from bookkeeper.auth.revocations import Revocations
from examples.certificates import Authority, Certificate


def der(shown: Certificate) -> bytes:
    return ssl.PEM_cert_to_DER_cert(
        Path(shown.cert).read_text().partition("-----END")[0] + "-----END CERTIFICATE-----\n"
    )


def test_who_is_on_a_list_is_found_and_nobody_else(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another authority")
    good, bad, worse = ours.client("good"), ours.client("bad"), theirs.client("worse")
    text = "".join(Path(each).read_text() for each in (ours.ca, theirs.ca, ours.revocations(bad)))
    read = Revocations.parse(text + Path(theirs.revocations(worse, days=3)).read_text())
    assert [read.refuses(der(shown), time.time()) for shown in (good, bad, worse)] == [False, True, True]
    assert read.end == pytest.approx(time.time() + 86_400, abs=60), "the first end of all"


def test_a_list_of_nobody_and_no_list(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    empty = Revocations.parse(Path(authority.ca).read_text() + Path(authority.revocations()).read_text())
    assert not empty.refuses(der(authority.client()), time.time())
    assert empty.end is not None
    assert Revocations.parse("") == Revocations()


def test_a_serial_of_another_authority_is_another_certificate(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another authority")
    mine = ours.client()
    lists = Path(ours.revocations()).read_text() + Path(theirs.revocations(mine)).read_text()
    read = Revocations.parse(Path(ours.ca).read_text() + Path(theirs.ca).read_text() + lists)
    assert not read.refuses(der(mine), time.time())


def test_what_is_cut_off_is_no_list_and_no_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown = authority.client()
    text = Path(authority.revocations(shown)).read_text()
    read = Revocations.parse(text)
    lines = text.splitlines(True)
    for kept in range(1, len(lines) - 2):
        with pytest.raises(ValueError, match=r"revocation list|base64|padding"):
            Revocations.parse("".join([*lines[:kept], "MA==\n", lines[-1]]))
    whole = der(shown)
    for size in (0, 1, 2, 10, 100, len(whole) - 1):
        with pytest.raises(ValueError, match=r"certificate|unpack"):
            read.refuses(whole[:size], time.time())


@pytest.mark.rule("X15")
def test_a_client_is_refused_as_openssl_would_refuse_it(tmp_path: Path) -> None:
    """Cause: where the library of TLS knows no lists, a list that had ended revoked nothing more but its own names, and
    one that somebody else had signed counted; OpenSSL refuses everybody then.
    """
    ours, theirs = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another authority")
    impostor = Authority(tmp_path / "c")  # of the same name as ours
    good, bad, other = ours.client("good"), ours.client("bad"), theirs.client("other")
    authorities, now = Path(ours.ca).read_text() + Path(theirs.ca).read_text(), time.time()
    listed = Revocations.parse(authorities + Path(ours.revocations(bad)).read_text())
    assert [listed.refuses(der(shown), now) for shown in (good, bad)] == [False, True]
    assert listed.refuses(der(other), now), "its authority has no list"
    assert listed.refuses(der(good), now + 2 * 86_400), "the list has ended"
    forged = Revocations.parse(authorities + Path(impostor.revocations()).read_text())
    assert forged.refuses(der(good), now), "nobody known has signed the list"
    renewed = Path(ours.revocations(bad, days=-1, file="old.pem")).read_text() + Path(ours.revocations()).read_text()
    assert not Revocations.parse(authorities + renewed).refuses(der(good), now), "the newest list counts"
    assert not Revocations.parse(authorities).refuses(der(bad), now)
    assert Revocations(unreadable=True).refuses(der(good), now)
