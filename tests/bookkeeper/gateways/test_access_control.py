from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.ids import Address
from bookkeeper.metrics import Histogram, Metrics, Summary
from bookkeeper.real import SystemClock, SystemRng
from examples.certificates import Authority
from spark_wal.webhdfs.service import ServingConfig
from tests.spark_wal.webhdfs.virtual import in_virtual_time

EVERYWHERE = Address("0.0.0.0", 9871)
TLS = ServerTlsFiles(certificate="c", key="k")
MUTUAL = ServerTlsFiles(certificate="c", key="k", client_ca="a")


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    ("access", "missing"),
    [
        (AccessConfig(), "--tls-cert and --tls-key"),
        (AccessConfig(token_file="t"), "--tls-cert and --tls-key"),
        (AccessConfig(tls=TLS), "--client-ca .* or --token-file"),
        (AccessConfig(tls=TLS, token_file="t"), None),
        (AccessConfig(tls=MUTUAL), None),
        (AccessConfig(insecure=True), None),
        (AccessConfig(tls=TLS, insecure=True), None),
    ],
)
def test_beyond_loopback_only_what_is_safe_or_said_to_be_insecure(access: AccessConfig, missing: str | None) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.1", "gateway.example.org", ""):
        listen = Address(host, 9871)
        if missing is None:
            ServingConfig(uri="mem:x", listen=listen, access=access)
            continue
        with pytest.raises(ConfigError, match=missing) as refused:
            ServingConfig(uri="mem:x", listen=listen, access=access)
        assert "--insecure" in str(refused.value)
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        ServingConfig(uri="mem:x", listen=Address(host, 9871), access=access)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="--tls-cert and --tls-key"):
        ServerTlsFiles(certificate="c", key="")
    with pytest.raises(ConfigError, match="required or optional"):
        ServerTlsFiles(certificate="c", key="k", client_certificates="maybe")
    with pytest.raises(ConfigError, match="--token-file"):
        AccessConfig(tls=ServerTlsFiles(certificate="c", key="k", client_ca="a", client_certificates="optional"))
    with pytest.raises(ConfigError, match="more than 0 s"):
        AccessConfig(reload_s=0)


@pytest.mark.rule("X43")
def test_files_that_others_may_read_are_refused_at_the_start(tmp_path: Path) -> None:
    shown = Authority(tmp_path).server("s")
    Path(shown.key).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        access(AccessConfig(tls=ServerTlsFiles(certificate=shown.cert, key=shown.key)))
    tokens = tmp_path / "tokens"
    tokens.touch(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        access(AccessConfig(token_file=str(tokens)))


def access(config: AccessConfig) -> AccessControl:
    return AccessControl(config, SystemClock(), SystemRng())


def told(control: AccessControl) -> dict[str, float]:
    metrics = Metrics()
    control.update_metrics(metrics)
    return {name: metric.value for name, _, _, metric in metrics if not isinstance(metric, Histogram | Summary)}


@pytest.mark.rule("X6")
def test_a_certificate_that_ends_soon_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority(tmp_path)
    for days, soon in ((30, 0), (10, 1)):
        shown = authority.server("s", days=days)
        found = access(AccessConfig(tls=ServerTlsFiles(certificate=shown.cert, key=shown.key)))
        found.refresh()
        assert told(found)["certificate_ends_soon"] == soon
    assert caplog.text.count("ends in") == 1


@pytest.mark.rule("X1")
@in_virtual_time
async def test_an_insecure_gateway_says_so_every_hour(caplog: pytest.LogCaptureFixture) -> None:
    found = access(AccessConfig(insecure=True))
    assert told(found)["insecure"] == 0
    found.insecure = True
    watching = asyncio.ensure_future(found.watch())
    await asyncio.sleep(2.5 * 3600)
    watching.cancel()
    assert caplog.text.count("this gateway is insecure") == 3
    assert told(found)["insecure"] == 1


def test_a_token_file_without_tokens_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    access(AccessConfig(token_file=str(tokens)))
    assert "every request is refused" in caplog.text


@pytest.mark.rule("X15")
def test_a_token_file_behind_links_is_read_again_when_its_directory_is_exchanged(tmp_path: Path) -> None:
    """Cause: as for certificates; here with equal sizes and older times."""
    old, new = new_token(), new_token()
    for name, token in (("a", old), ("b", new)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens").write_text(token_line("etl", token))
        (tmp_path / name / "tokens").chmod(0o600)
        os.utime(tmp_path / name / "tokens", (1_000_000, 1_000_000))
    (tmp_path / "..data").symlink_to("a")
    (tmp_path / "tokens").symlink_to("..data/tokens")
    access = AccessControl(AccessConfig(token_file=str(tmp_path / "tokens")), SystemClock(), SystemRng())
    before = access.generation
    access.refresh()
    assert access.generation == before
    (tmp_path / "new").symlink_to("b")
    (tmp_path / "new").rename(tmp_path / "..data")
    access.refresh()
    assert access.generation != before
    assert [access.book().owner(each.reveal(), 0) is not None for each in (old, new)] == [False, True]


def test_tokens_that_never_end_are_told_of_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, endless, ending = tmp_path / "tokens", new_token(), new_token()
    path.touch(mode=0o600)
    path.write_text(token_line("a", endless) + token_line("b", ending, end_s=2_000_000_000))
    access = AccessControl(AccessConfig(token_file=str(path)), SystemClock(), SystemRng())
    [token] = [each for each in access.book() if each.end_s is None]
    assert f"in {path} 1 token never ends ({token.id})" in caplog.text
