from __future__ import annotations

from pathlib import Path

from benchmarks.rivals.servers import COUNT, KafkaServers, NatsServers


def test_a_broker_syncs_each_batch_and_needs_two_copies(tmp_path: Path) -> None:
    servers = KafkaServers(tmp_path, "jars")
    lines = servers.properties(1).splitlines()
    assert {"log.flush.interval.messages=1", "min.insync.replicas=2", "node.id=2"} <= set(lines)
    assert f"PLAINTEXT://127.0.0.1:{servers.ports[1]}," in servers.properties(1)
    assert servers.properties(0) != servers.properties(2)


def test_a_server_of_nats_syncs_each_record_and_knows_the_others(tmp_path: Path) -> None:
    servers = NatsServers(tmp_path, tmp_path / "nats-server")
    text = servers.configuration(2)
    assert "sync_interval: always" in text and text.startswith("server_name: n3\n")
    assert text.count("nats://") == COUNT
    assert list(servers.prepare()) == ["n1", "n2", "n3"]
    assert (tmp_path / "n3.conf").read_text() == text


def test_clients_find_every_server(tmp_path: Path) -> None:
    assert len(set(NatsServers(tmp_path, tmp_path).address.split(","))) == COUNT
    brokers = KafkaServers(tmp_path, "")
    assert all(f":{port}" in brokers.address for port in brokers.ports)
