"""Three servers of a rival on one disk: configured as durable as ours, started, killed, started again."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from bookkeeper.launchers.java import find_java
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until
from bookkeeper.launchers.zookeeper import free_port, tied_to_parent

COUNT: Final = 3
_HOST: Final = "127.0.0.1"


class RivalServers(ABC):
    """The servers of one system. A context manager; leaving it ends every process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = [free_port() for _ in range(COUNT)]
        self._peers = [free_port() for _ in range(COUNT)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    @abstractmethod
    def prepare(self) -> dict[str, list[str]]:
        """Write the configurations; the command of each server, by the name that its clients know."""

    @property
    def address(self) -> str:
        """Where clients find them."""
        return ",".join(f"{_HOST}:{port}" for port in self.ports)

    def pid(self, name: str) -> int:
        """Of a server that runs."""
        return self._processes[name].pid

    def launch(self, name: str) -> None:
        """Start a server, again if it was killed. Does not wait."""
        if name in self._processes:
            self._processes[name].wait()
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                tied_to_parent(self._commands[name]), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> RivalServers:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._commands = self.prepare()
        for name in self._commands:
            self.launch(name)
        running = self._processes.values()
        watched = ProgressSource(
            files=[self.directory],
            pids=[each.pid for each in running],
            runs=lambda: all(each.poll() is None for each in running),
        )
        try:
            until(lambda: all(map(_listens, self.ports)), f"one of the servers (logs in {self.directory})", watched)
        except StalledError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


class KafkaServers(RivalServers):
    """Brokers that are controllers, too. A batch is synced on the leader and on the followers before it counts."""

    def __init__(self, directory: Path, class_path: str) -> None:
        super().__init__(directory)
        self._class_path = class_path

    def properties(self, number: int) -> str:
        """The configuration of a broker."""
        voters = ",".join(f"{node + 1}@{_HOST}:{port}" for node, port in enumerate(self._peers))
        settings = {
            "process.roles": "broker,controller",
            "node.id": number + 1,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{_HOST}:{self.ports[number]},CONTROLLER://{_HOST}:{self._peers[number]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.directory / f"data-{number + 1}",
            "default.replication.factor": COUNT,
            "offsets.topic.replication.factor": COUNT,
            "min.insync.replicas": 2,
            "log.flush.interval.messages": 1,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def prepare(self) -> dict[str, list[str]]:
        java, commands = find_java().executable, {}
        cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "A")
        for number in range(COUNT):
            path = self.directory / f"broker-{number + 1}.properties"
            path.write_text(self.properties(number))
            form = [java, "-cp", self._class_path, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(path)]
            subprocess.run(form, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            shipped = ["-Xms1G", "-Xmx1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:-UsePerfData"]
            commands[str(number + 1)] = [java, *shipped, "-cp", self._class_path, "kafka.Kafka", str(path)]
        return commands


class NatsServers(RivalServers):
    """Servers of JetStream that sync every record. Names are ``n1`` to ``n3``."""

    def __init__(self, directory: Path, server: Path) -> None:
        super().__init__(directory)
        self._server = server

    @property
    def address(self) -> str:
        return ",".join(f"nats://{_HOST}:{port}" for port in self.ports)

    def configuration(self, number: int) -> str:
        """The configuration of a server."""
        routes = ", ".join(f'"nats://{_HOST}:{port}"' for port in self._peers)
        return (
            f'server_name: n{number + 1}\nlisten: "{_HOST}:{self.ports[number]}"\n'
            f'jetstream {{ store_dir: "{self.directory / f"n{number + 1}"}", sync_interval: always }}\n'
            f'cluster {{ name: rivals, listen: "{_HOST}:{self._peers[number]}", routes: [{routes}] }}\n'
        )

    def prepare(self) -> dict[str, list[str]]:
        commands = {}
        for number in range(COUNT):
            path = self.directory / f"n{number + 1}.conf"
            path.write_text(self.configuration(number))
            commands[f"n{number + 1}"] = [str(self._server), "-c", str(path)]
        return commands
