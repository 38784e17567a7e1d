"""Keys and trust from files: what is refused, what is noticed, how little TLS may be."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from bookkeeper.errors import ConfigError
from bookkeeper.real.tls import FileTls
from bookkeeper.seams import TlsFiles
from examples.certificates import Authority, Certificate


def server(made: Certificate, ca: str | None = None) -> FileTls:
    return FileTls(TlsFiles(server=True, cert=made.cert, key=made.key, ca=ca))


@pytest.mark.rule("X3", "X4", "X5")
def test_contexts_verify_and_take_no_old_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = server(authority.server(), authority.ca).context
    assert ours.verify_mode is ssl.CERT_REQUIRED
    assert ours.minimum_version is ssl.TLSVersion.TLSv1_2
    assert ours.num_tickets == 0 and ours.options & ssl.OP_NO_TICKET
    theirs = FileTls(TlsFiles(server=False, ca=authority.ca)).context
    assert theirs.verify_mode is ssl.CERT_REQUIRED and theirs.check_hostname
    assert theirs.minimum_version is ssl.TLSVersion.TLSv1_2
    assert not theirs.hostname_checks_common_name


@pytest.mark.rule("X6")
def test_a_changed_file_is_noticed_and_a_bad_one_is_not_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = authority.server()
    tls = server(made)
    context, certificate = tls.context, tls.certificate
    assert not tls.refresh()
    key = Path(made.key).read_bytes()
    Path(made.key).write_bytes(key[: len(key) // 2])
    with pytest.raises(ConfigError, match=r"bookie\.key"):
        tls.refresh()
    assert (tls.context, tls.certificate) == (context, certificate)
    authority.server()
    assert tls.refresh()
    assert tls.context is not context and tls.certificate != certificate
    Path(made.cert).unlink()
    with pytest.raises(ConfigError, match=r"bookie\.pem"):
        tls.refresh()


@pytest.mark.rule("X43")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    made = Authority(tmp_path).server()
    Path(made.key).chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600 .*bookie\.key"):
        server(made)
    Path(made.key).chmod(0o400)
    server(made)


def test_a_file_without_a_certificate_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_text("rubbish\n")
    (tmp_path / "rubbish").chmod(0o600)
    rubbish = str(tmp_path / "rubbish")
    with pytest.raises(ConfigError, match=r"rubbish\): a certificate in PEM format, or its private key, is missing"):
        FileTls(TlsFiles(server=True, cert=rubbish, key=rubbish))


def test_an_encrypted_key_is_an_error_and_no_question_at_the_terminal(tmp_path: Path) -> None:
    made = Authority(tmp_path).server()
    key = serialization.load_pem_private_key(Path(made.key).read_bytes(), None)
    Path(made.key).write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match="without a password"):
        server(made)


@pytest.mark.rule("X6")
def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    """A list of revocations in the file of authorities is heeded."""
    authority = Authority(tmp_path)
    good, bad = authority.client("good"), authority.client("bad")
    serial = x509.load_pem_x509_certificate(Path(bad.cert).read_bytes()).serial_number
    now = datetime.now(UTC)
    revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
    issuer = x509.load_pem_x509_certificate(Path(authority.ca).read_bytes()).subject
    crl = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer)
        .last_update(now - timedelta(minutes=1))
        .next_update(now + timedelta(days=1))
        .add_revoked_certificate(revoked)
        .sign(authority._key, hashes.SHA256())
    )
    both = tmp_path / "both.pem"
    both.write_bytes(Path(authority.ca).read_bytes() + crl.public_bytes(serialization.Encoding.PEM))
    tls = server(authority.server(), str(both))
    assert shakes_hands(tls, client(authority, good))
    assert not shakes_hands(tls, client(authority, bad))


@pytest.mark.rule("X4")
def test_where_nobody_has_to_show_a_certificate_a_wrong_one_is_still_refused(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others", "another authority")
    made = ours.server()
    strict, open_ = (
        FileTls(TlsFiles(server=True, cert=made.cert, key=made.key, ca=ours.ca, anonymous=anonymous))
        for anonymous in (False, True)
    )
    nameless = FileTls(TlsFiles(server=False, ca=ours.ca, verify_host=False))
    assert shakes_hands(open_, nameless) and not shakes_hands(strict, nameless)
    assert shakes_hands(open_, client(ours, ours.client()))
    assert not shakes_hands(open_, client(ours, others.client()))


def client(authority: Authority, made: Certificate) -> FileTls:
    return FileTls(TlsFiles(server=False, ca=authority.ca, cert=made.cert, key=made.key, verify_host=False))


def shakes_hands(ours: FileTls, theirs: FileTls) -> bool:
    """A handshake in memory."""
    to_us, to_them = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        theirs.context.wrap_bio(to_them, to_us, server_side=False),
        ours.context.wrap_bio(to_us, to_them, server_side=True),
    ]
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
    return not sides


def test_a_loop_can_use_what_is_made(tmp_path: Path) -> None:
    """asyncio checks the type of contexts."""
    authority = Authority(tmp_path)

    async def main() -> None:
        listener = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, "127.0.0.1", 0, ssl=server(authority.server()).context
        )
        listener.close()

    asyncio.run(main())
