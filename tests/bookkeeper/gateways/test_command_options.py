from __future__ import annotations

import resource

import click
import pytest
from click.testing import CliRunner

from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.command_options import DESCRIPTORS, access_config, access_options, raise_descriptors


def test_a_gateway_has_descriptors_for_its_connections(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: given.append(limits))
    raise_descriptors(100)
    assert given == []
    raise_descriptors(2000)
    assert given == [(2000 + DESCRIPTORS, 4096)]
    assert not caplog.records
    raise_descriptors(10_000)
    assert given[1:] == [(4096, 4096)]
    assert "only 4096 descriptors, too few for --connections-max 10000" in caplog.text


def test_the_options_make_the_rules_of_the_port(caplog: pytest.LogCaptureFixture) -> None:
    made: list[AccessConfig] = []

    @click.command()
    @access_options
    def serve(**options: object) -> None:
        made.append(access_config(**options))  # type: ignore[arg-type]

    assert CliRunner().invoke(serve, ["--tls-cert", "c", "--tls-key", "k", "--token-file", "t"]).exit_code == 0
    assert CliRunner().invoke(serve, ["--insecure"]).exit_code == 0
    assert CliRunner().invoke(serve, ["--audit", "/var/log/gateway/audit"]).exit_code == 0
    [guarded, insecure, audited] = made
    assert audited.audit.to == "/var/log/gateway/audit"
    assert guarded.tls is not None
    assert (guarded.tls.certificate, guarded.tls.key, guarded.token_file) == ("c", "k", "t")
    assert insecure == AccessConfig(insecure=True)
    refused = CliRunner().invoke(serve, ["--client-ca", "a"])
    assert str(refused.exception) == "--client-ca needs TLS: give --tls-cert and --tls-key"
    refused = CliRunner().invoke(serve, ["--audit", "audit"])
    assert "absolute path, or log" in str(refused.exception)
