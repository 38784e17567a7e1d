"""The write-ahead logs of DStreams, stock classes, in a process that can be killed: ``python … '{"do": "write", …}'``.

``write``: a driver's and a receiver's log take ``records``; each ``write()`` has returned when the line of JSON comes;
then the process waits for its end. ``read``: new instances tell everything that they find.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

KINDS = ("Driver", "Receiver")


@dataclass
class Job:
    """What the process is told."""

    do: str
    location: str
    confs: dict[str, dict[str, str]] = field(default_factory=dict)
    """The settings, by the name of the directory in which logs are written with them."""
    records: list[str] = field(default_factory=list)


class Logs:
    """Makes logs in a JVM without a Spark application: it takes two seconds, not ten."""

    def __init__(self, job: Job) -> None:
        from pyspark.java_gateway import launch_gateway

        self.jvm: Any = launch_gateway().jvm
        self._job = job

    def open(self, name: str, kind: str) -> Any:
        conf = self.jvm.org.apache.spark.SparkConf(False)
        for key, value in self._job.confs[name].items():
            conf.set(key, value)
        hadoop = self.jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(conf)
        make = getattr(self.jvm.org.apache.spark.streaming.util.WriteAheadLogUtils, f"createLogFor{kind}")
        return make(conf, f"{self._job.location}/{name}/{kind}", hadoop)

    def write(self, log: Any, text: str, at_ms: int) -> Any:
        return log.write(self.jvm.java.nio.ByteBuffer.wrap(bytearray(text.encode())), at_ms)

    def text(self, data: Any) -> str:
        return str(self.jvm.java.nio.charset.StandardCharsets.UTF_8.decode(data).toString())

    def everything(self, log: Any) -> list[str]:
        found = log.readAll()
        records = []
        while found.hasNext():
            records.append(self.text(found.next()))
        return records


def write(job: Job) -> dict[str, Any]:
    """How many writes of a receiver have returned, by directory."""
    logs = Logs(job)
    told: dict[str, Any] = {}
    for name in job.confs:
        for kind in KINDS:
            log = logs.open(name, kind)
            handles = [logs.write(log, text, 1000 + number) for number, text in enumerate(job.records)]
        told[name] = len(handles)
    return told


def read(job: Job) -> dict[str, Any]:
    logs = Logs(job)
    return {name: {kind: logs.everything(logs.open(name, kind)) for kind in KINDS} for name in job.confs}


def main(job: Job) -> None:
    told = {"write": write, "read": read}[job.do](job)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    if job.do == "write":
        time.sleep(600)


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
