"""Protected gateways under several versions of stock PySpark, and what their users see when something is wrong.

::

    python -m tests.spark_wal.versions run       4.3.0 4.0.5=/venvs/4.0/bin/python 3.5.9=/venvs/3.5/bin/python
    python -m tests.spark_wal.versions failures  4.3.0 4.0.5=... 3.5.9=...
    python -m tests.spark_wal.versions data      4.3.0 4.0.5=... 3.5.9=...

Each argument is a version and the Python that has it (default: this one). ``run`` starts a small stateful query for
each protection, kills its driver between planning and committing a batch, and lets a second one go on; ``failures``
makes every mistake of the table in docs/spark.md once, with Hadoop's shell from that PySpark's jars, and prints what
it says; ``data`` uses ``format("bookkeeper")`` in every way once, from a session and from a client of Spark Connect:
that Python must have this project, installed from a wheel, and ``pyspark[connect]``. For one machine with Java; a few
minutes for each version.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape

from bookkeeper.errors import ConfigError
from bookkeeper.gateways.tokens import new_token
from bookkeeper.launchers import java
from bookkeeper.launchers.machine_speed import stretch
from examples.certificates import LOOPBACK, Authority
from segments import sync
from spark_wal.spark_access import GatewayAccess
from tests.integration.processes import bookies
from tests.spark_wal.processes import Driver, GatewayProcess, JobProcess, assert_exactly_once, until
from tests.spark_wal.secured import PROTECTIONS, Secured
from tests.spark_wal.short_job import ROWS

RUN_S = 600.0
EXECUTORS = {"spark.master": "local-cluster[2,1,600]", "spark.executor.memory": "500m"}
"""Executors as processes of their own, with directories of their own."""


@dataclass(frozen=True)
class Spark:
    """One PySpark."""

    version: str
    python: str

    @property
    def jars(self) -> Path:
        code = "import pyspark, pathlib; print(pathlib.Path(pyspark.__file__).parent / 'jars')"
        return Path(
            subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        )


# -- run -------------------------------------------------------------------------------------------------


def run(spark: Spark) -> Iterator[tuple[str, str]]:
    """Protection, outcome: with everything in one JVM, then with executors of their own."""
    rows = [(protection, False) for protection in PROTECTIONS] + [(protection, True) for protection in PROTECTIONS[-2:]]
    for protection, executors in rows:
        with tempfile.TemporaryDirectory(prefix="spark-versions-") as directory:
            began = time.monotonic()
            try:
                outcome = killed_and_resumed(spark, Path(directory), protection, EXECUTORS if executors else {})
            except ConfigError as error:
                outcome = f"refused: {error}"
            name = f"{protection}, executors" if executors else protection
            yield name, f"{outcome} ({time.monotonic() - began:.0f} s)"


def killed_and_resumed(spark: Spark, directory: Path, protection: str, more: Mapping[str, str]) -> str:
    secured = Secured(directory, protection)
    conf = {**secured.spark_conf(spark.version), **more}
    secured.gateway.start()
    location, out = secured.gateway.location("ckpt"), directory / "out"
    drivers = [Driver(location, out, python=spark.python, conf=conf, hold=1)]
    try:
        until(lambda: 1 in drivers[0].attempts(), RUN_S)
        drivers[0].kill()
        drivers.append(Driver(location, out, python=spark.python, conf=conf, until=2))
        result = drivers[1].result(RUN_S)
        if "finished" not in result:
            return f"FAILED: {result}"
        assert_exactly_once(out, result["finished"])
        assert drivers[1].attempts() == [0, 1, *range(1, result["finished"] + 1)]
    except AssertionError as error:
        return f"FAILED: {error}"
    finally:
        for driver in drivers:
            driver.kill()
        secured.gateway.kill()
    return f"exactly once up to batch {result['finished']}"


# -- data ------------------------------------------------------------------------------------------------


def data(spark: Spark) -> Iterator[tuple[str, str]]:
    """Client, what became of each use."""
    script = Path(__file__).with_name("short_job.py")
    for client, remote in (("session", None), ("Spark Connect", "local[2]")):
        with tempfile.TemporaryDirectory(prefix="spark-versions-") as name, bookies(Path(name)) as cluster:
            with sync.connect(cluster.uri) as namespace, namespace.create("given").writer() as writer:
                writer.append_batch([b"%d" % number for number in range(ROWS)])
            fields = {"metadata": cluster.uri, "home": name, "remote": remote}
            job = JobProcess(script, fields, Path(name) / "job", python=spark.python)
            try:
                told = job.result(RUN_S)
            except AssertionError as error:
                told = {"": f"FAILED: {error}"}
            finally:
                job.kill()
        yield client, ", ".join(f"{use} {seen}" for use, seen in told.items())


# -- failures --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """What is wrong, at which gateway, how a client gets it wrong."""

    what: str
    protection: str
    access: Callable[[Secured], GatewayAccess] = lambda secured: secured.access
    spoil: Callable[[Path], None] = lambda directory: None
    location: Callable[[str], str] = lambda location: location
    hosts: Sequence[str] = LOOPBACK
    """What the gateway's certificate is for."""


def other_ca(secured: Secured) -> GatewayAccess:
    return replace(secured.access, ca=Authority(secured.directory / "other", "another authority").ca)


def bad_token(secured: Secured) -> GatewayAccess:
    return replace(secured.access, token=new_token())


def remove(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).unlink()


MISTAKES = (
    Mistake("nothing (to see that it works)", "tls"),
    Mistake("another CA", "tls", other_ca),
    Mistake("trust store missing", "tls", spoil=remove("shipped/gateway-ca.p12")),
    Mistake("another host name", "tls", hosts=("gateway.example.org",)),
    Mistake("no client certificate", "mutual tls", lambda s: replace(s.access, certificate=None, key=None)),
    Mistake("webhdfs:// to a port with TLS", "tls", location=lambda at: at.replace("swebhdfs", "webhdfs")),
    Mistake("swebhdfs:// to a port without", "none"),
    Mistake("no token", "tls and token", lambda s: replace(s.access, token=None)),
    Mistake("wrong or revoked token", "tls and token", bad_token),
    Mistake("token for another path", "tls and token", location=lambda at: at.replace("/ckpt", "/elsewhere")),
    Mistake("OAuth2, wrong secret", "tls and oauth2", bad_token),
    Mistake("OAuth2, CA only in ssl-client.xml", "tls and oauth2", spoil=remove("shipped/jvm-ca.p12")),
)


def failures(spark: Spark) -> Iterator[tuple[str, str]]:
    """Mistake, what the shell says."""
    jars = spark.jars
    for mistake in MISTAKES:
        with tempfile.TemporaryDirectory(prefix="spark-versions-") as name:
            directory = Path(name)
            try:
                with gateway_for(mistake, directory) as (secured, location):
                    conf = secured.spark_conf(spark.version, mistake.access(secured))
                    mistake.spoil(directory / "spark")
                    yield mistake.what, said(jars, directory, conf, mistake.location(location))
            except ConfigError as error:
                yield mistake.what, f"refused before: {error}"


@contextmanager
def gateway_for(mistake: Mistake, directory: Path) -> Iterator[tuple[Secured, str]]:
    secured = Secured(directory, mistake.protection, mistake.hosts)
    plain = GatewayProcess(directory / "plain") if mistake.protection == "none" else None
    gateway = plain or secured.gateway
    gateway.start()
    try:
        yield secured, gateway.location("ckpt").replace("webhdfs", "swebhdfs" if plain else "webhdfs")
    finally:
        gateway.kill()


def said(jars: Path, directory: Path, conf: dict[str, str], location: str) -> str:
    """The last line that is no warning, of ``hdfs dfs -mkdir``."""
    settings = {k.removeprefix("spark.hadoop."): v for k, v in conf.items() if k.startswith("spark.hadoop.")}
    settings["dfs.http.client.retry.policy.enabled"] = "false"
    settings["dfs.webhdfs.socket.read-timeout"] = "10s"
    xml = "".join(f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in settings.items())
    (directory / "hadoop").mkdir()
    secret = directory / "spark" / "driver" / "__spark_hadoop_conf__.xml"
    more = secret.read_text().replace("<configuration>", "").replace("</configuration>", "") if secret.exists() else ""
    (directory / "hadoop" / "core-site.xml").write_text(f"<configuration>{xml}{more}</configuration>")
    flags = [o for o in conf["spark.driver.extraJavaOptions"].split() if o.startswith(("-D", "-XX"))]
    places = [directory / "hadoop", conf["spark.driver.extraClassPath"], f"{jars}/*"]
    command = [java.find_java().executable, "-Xmx256m", *flags, "-cp", ":".join(map(str, places))]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "org.apache.hadoop.fs.FsShell", "-mkdir", "-p", location],
        capture_output=True,
        text=True,
        timeout=300 * stretch(),
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith(("mkdir:", "-mkdir:"))]
    told = (
        lines[-1].partition(":")[2].strip() if lines else ("it works" if done.returncode == 0 else done.stderr[-300:])
    )
    return f"{told} ({time.monotonic() - began:.0f} s)"


def main(arguments: list[str]) -> int:
    what, *rest = arguments
    wanted = [part.partition("=") for part in rest]
    failed = 0
    for version, _, python in wanted:
        spark = Spark(version, python or sys.executable)
        for name, outcome in {"run": run, "failures": failures, "data": data}[what](spark):
            print(f"{version:6}  {name:36}  {outcome}", flush=True)
            failed += "FAILED" in outcome
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
