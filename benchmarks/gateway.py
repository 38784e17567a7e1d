"""Atomic files a second through the gateway, by the requests that Spark's FileSystem-based manager sends.

An atomic file is CREATE (a 307, then the bytes) of a temporary name and a RENAME onto the final one: three
requests on one kept connection. Client threads are tasks of one process here; its CPU is part of what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from pathlib import Path
from statistics import median

from benchmarks.processes import BookieProcesses
from benchmarks.report import Aim, Figure, Report
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, until

BODY = bytes(1200)
SECONDS = 5.0


def measure(report: Report, directory: Path) -> None:
    """Rows of the gateway."""
    report.heading("the gateway, atomic files of 1.2 KB as Spark's FileSystem-based manager writes them")
    with BookieProcesses(directory / "gateway") as cluster:
        port = start_gateway(cluster)
        sixteen = asyncio.run(_lanes(port, 16))
        report.add(Figure("atomic files/s, 16 connections", len(sixteen) / SECONDS, "/s", Aim(2000, 1000), _p(sixteen)))
        one = asyncio.run(_lanes(port, 1))
        report.add(Figure("atomic file, 1 connection, p50", median(one) * 1e3, "ms", None, _p(one)))


def start_gateway(cluster: BookieProcesses) -> int:
    """Start a gateway process of this cluster; its port, once it answers."""
    import socket
    import urllib.request

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = cluster.start("gateway", "webhdfs", "--listen", f"127.0.0.1:{port}", "--namespace", "bench")

    def answers() -> bool:
        try:
            urllib.request.urlopen(
                f"http://127.0.0.1:{port}/webhdfs/v1/?op=GETFILESTATUS", timeout=5 * stretch()
            ).close()
            return True
        except OSError:
            return False

    until(answers, "the gateway", ProgressSource(pids=[process.pid], runs=lambda: process.poll() is None))
    return port


def _p(spans: list[float]) -> str:
    ordered = sorted(spans)
    return f"p50 {ordered[len(ordered) // 2] * 1e3:.2f} ms, p99 {ordered[len(ordered) * 99 // 100] * 1e3:.2f} ms"


async def _lanes(port: int, lanes: int) -> list[float]:
    spans: list[float] = []
    until = time.perf_counter() + SECONDS
    directory = f"/bench/{uuid.uuid4().hex}"  # of this run alone: a rename onto a file that is there does nothing
    await asyncio.gather(*(_lane(port, f"{directory}/{number}", until, spans) for number in range(lanes)))
    return spans


async def _lane(port: int, directory: str, until: float, spans: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"Host: 127.0.0.1:{port}\r\nUser-Agent: Java/17\r\n"
    number = 0
    while time.perf_counter() < until:
        number += 1
        final = f"{directory}/{number}"
        temporary = f"{directory}/.{number}.{uuid.uuid4()}.tmp"
        create = f"/webhdfs/v1{temporary}?op=CREATE&user.name=bench&overwrite=true"
        began = time.perf_counter()
        target, _ = await _request(
            reader, writer, f"PUT {create} HTTP/1.1\r\n{head}Content-Length: 0\r\n\r\n".encode(), 307
        )
        target = "/" + target.split("/", 3)[3]
        put = f"PUT {target} HTTP/1.1\r\n{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
        await _request(reader, writer, put, 201)
        rename = f"/webhdfs/v1{temporary}?op=RENAME&user.name=bench&destination={final}"
        _, done = await _request(
            reader, writer, f"PUT {rename} HTTP/1.1\r\n{head}Content-Length: 0\r\n\r\n".encode(), 200
        )
        if json.loads(done) != {"boolean": True}:
            raise RuntimeError(f"{temporary} was not renamed: {done.decode(errors='replace')[:200]}")
        spans.append(time.perf_counter() - began)
    writer.close()


async def _request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, expected: int
) -> tuple[str, bytes]:
    """Send one request, read its reply: the Location, if there is one, and the body."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    while head.startswith("HTTP/1.1 100"):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    if int(lines[0].split()[1]) != expected:
        raise RuntimeError(f"{request.split(b' ')[1].decode()}: {lines[0]} {body.decode(errors='replace')[:200]}")
    return headers.get("location", ""), body


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_lanes(int(sys.argv[1]), int(sys.argv[2])))))
