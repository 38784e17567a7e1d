"""What clients meet is in test_listener; here are the files."""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from bookkeeper.admin.extras import missing
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.server_tls import ServerCertificates, ServerTlsFiles
from bookkeeper.install import how_to_install
from examples.certificates import Authority


def files(authority: Authority, **more: str) -> ServerTlsFiles:
    shown = authority.server("s")
    return ServerTlsFiles(**{"certificate": shown.cert, "key": shown.key, **more})


@pytest.mark.rule("X3")
def test_old_versions_compression_and_tickets_are_off(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ServerCertificates(files(authority, client_ca=authority.ca)).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.num_tickets == 0


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    held = ServerCertificates(files(authority))
    assert not held.refresh()
    before = held.not_after
    authority.server("s", days=60)
    assert held.refresh()
    assert held.not_after > before
    Path(authority.directory / "s.pem").unlink()
    assert not held.refresh()


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with pytest.raises(ConfigError, match=r"none\.pem"):
        ServerCertificates(files(authority, certificate=str(tmp_path / "none.pem")))
    with pytest.raises(ConfigError, match="cannot be used"):
        ServerCertificates(files(authority, key=authority.client().key))
    with pytest.raises(ConfigError, match="cannot be used"):
        ServerCertificates(files(authority, client_ca=authority.password_file))
    with pytest.raises(ConfigError, match="--tls-crl needs --client-ca"):
        files(authority, crl=authority.revocations())
    with pytest.raises(ConfigError, match=r"none\.pem"):
        ServerCertificates(files(authority, client_ca=authority.ca, crl=str(tmp_path / "none.pem")))


def test_a_set_of_files_is_one_context_from_then_on(tmp_path: Path) -> None:
    """Nothing is exchanged inside a handshake: rules would stay those of the first set."""
    authority = Authority(tmp_path)
    held = ServerCertificates(files(authority, client_ca=authority.ca))
    first = held.context
    assert first.sni_callback is None
    Path(authority.ca).write_text(Path(authority.ca).read_text() + Path(authority.revocations()).read_text())
    assert held.refresh()
    assert held.context is not first
    assert held.context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_without_the_library_that_reads_lists_no_gateway_starts_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    held = ServerCertificates(files(authority, client_ca=authority.ca))
    listed = authority.revocations()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ModuleNotFoundError) as lacks:
        ServerCertificates(files(authority, client_ca=authority.ca, crl=listed))
    assert missing(lacks.value).endswith(how_to_install("spark"))
    Path(authority.ca).write_text(Path(authority.ca).read_text() + Path(listed).read_text())
    assert held.refresh()
    assert "open connections with revoked certificates stay open" in caplog.text


def test_a_key_with_a_password_is_refused_instead_of_asked_for(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    given = files(authority)
    key = serialization.load_pem_private_key(Path(given.key).read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"x")
    form = serialization.PrivateFormat.PKCS8
    Path(given.key).write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    with pytest.raises(ConfigError, match="has a password"):
        ServerCertificates(given)


def generation(directory: Path, number: int, authority: Authority) -> Path:
    """A directory with a certificate and its key, with times of long ago."""
    made = directory / f"generation{number}"
    made.mkdir()
    shown = authority.server(f"s{number}")
    for name, source in (("tls.crt", shown.cert), ("tls.key", shown.key)):
        (made / name).write_bytes(Path(source).read_bytes())
        (made / name).chmod(0o600)
        os.utime(made / name, (1_000_000 - number, 1_000_000 - number))
    return made


@pytest.mark.rule("X15")
def test_files_behind_links_are_renewed_when_a_directory_is_exchanged_and_never_mixed(tmp_path: Path) -> None:
    """Cause: files that are mounted as links to links are renewed by exchanging a directory; the link's own time stays,
    and the new files may be older, so that nothing was reloaded."""
    authority = Authority(tmp_path / "ca")
    made = [generation(tmp_path, number, authority) for number in range(3)]
    data = tmp_path / "..data"
    data.symlink_to(made[0])
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(Path("..data") / name)
    held = ServerCertificates(ServerTlsFiles(certificate=str(tmp_path / "tls.crt"), key=str(tmp_path / "tls.key")))

    def shown(number: int) -> tuple[bytes, bytes]:
        return (made[number] / "tls.crt").read_bytes(), (made[number] / "tls.key").read_bytes()

    assert (held.pem().certificate, held.pem().key) == shown(0)
    for number in (1, 2):
        (tmp_path / "new").symlink_to(made[number])
        (tmp_path / "new").rename(data)
        assert (held.pem().certificate, held.pem().key) == shown(number - 1), "until they are looked at"
        assert held.refresh()
        assert (held.pem().certificate, held.pem().key) == shown(number)
    (tmp_path / "tls.crt").unlink()
    (tmp_path / "tls.crt").symlink_to(made[0] / "tls.crt")
    assert not held.refresh(), "a new certificate with an old key"
    assert (held.pem().certificate, held.pem().key) == shown(2)
