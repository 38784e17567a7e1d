"""Gateways that are protected, with everything their clients need, in a directory."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.gateways.tokens import new_token, token_line
from examples.certificates import LOOPBACK, Authority
from spark_wal.service import CheckpointService
from spark_wal.spark_access import GatewayAccess
from tests.spark_wal.processes import GatewayProcess

PROTECTIONS: Final = ("tls", "mutual tls", "tls and token", "mutual tls and token", "tls and oauth2")


class Secured:
    """One protection: how the gateway is started, how Spark reaches it, how the test does."""

    def __init__(self, directory: Path, protection: str, hosts: Sequence[str] = LOOPBACK) -> None:
        self.directory = directory
        self.authority = Authority(directory / "ca")
        self.token = new_token()
        server, client = self.authority.server("gateway", hosts=hosts), self.authority.client("spark")
        tokens = directory / "tokens"
        tokens.touch(0o600)
        tokens.write_text(signing_key_line("k1") + token_line("spark", self.token, ["/ckpt", "/copy"]))
        admin = new_token()
        tokens.write_text(tokens.read_text() + token_line("test", admin))
        options = ["--tls-cert", server.cert, "--tls-key", server.key]
        access = GatewayAccess(ca=self.authority.ca)
        trust = ssl.create_default_context(cafile=self.authority.ca)
        trust.check_hostname = hosts is LOOPBACK
        headers: dict[str, str] = {}
        if "mutual" in protection:
            options += ["--client-ca", self.authority.ca]
            access = replace(access, certificate=client.cert, key=client.key)
            trust.load_cert_chain(client.cert, client.key)
        if "token" in protection or "oauth2" in protection:
            options += ["--token-file", str(tokens)]
            access = replace(access, token=self.token, client_id="spark" if "oauth2" in protection else None)
            headers = {"Authorization": f"Bearer {admin.reveal()}"}
        self.access = access
        self.trust = trust
        self.gateway = GatewayProcess(directory / "namespace", options, trust, headers)

    def spark_conf(self, spark_version: str | None = None, access: GatewayAccess | None = None) -> dict[str, str]:
        """As a user gets it: from a service at the gateway's address."""
        service = CheckpointService.at(self.gateway.url, access=access or self.access)
        conf = service.spark_conf(str(self.directory / "spark"), spark_version=spark_version)
        conf["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        conf["spark.driver.memory"] = "512m"
        return conf
