"""Prometheus and its promtool: from the PATH, or from Debian's package in a cache, without installing anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.apache_servers.jars import cache_directory


class NoPrometheusError(Exception):
    """There is none, and it cannot be had; the message says why."""


def cache(environment: Mapping[str, str]) -> Path:
    """The directory that keeps what was fetched."""
    return cache_directory(environment).with_name("prometheus")


def find(tool: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """``prometheus`` or ``promtool``, if it is here."""
    found = shutil.which(tool, path=environment.get("PATH", ""))
    kept = cache(environment) / "usr/bin" / tool
    return Path(found) if found else kept if kept.exists() else None


def find_or_fetch(tool: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The same; on Debian the package is fetched once.

    Raises:
        NoPrometheusError: it is not here, and cannot be fetched.
    """
    if (found := find(tool, environment)) is not None:
        return found
    apt, unpack = shutil.which("apt-get"), shutil.which("dpkg")
    if apt is None or unpack is None:
        raise NoPrometheusError(f"{tool} is not on the PATH, and there is no apt-get to fetch Debian's package with")
    place = cache(environment)
    place.mkdir(parents=True, exist_ok=True)
    fetched = subprocess.run([apt, "download", "prometheus"], cwd=place, capture_output=True, text=True, check=False)
    packages = sorted(place.glob("prometheus_*.deb"))
    if fetched.returncode or not packages:
        raise NoPrometheusError(
            f"{tool} is not on the PATH, and Debian's package cannot be had: {fetched.stderr[-500:]}"
        )
    subprocess.run([unpack, "-x", str(packages[-1]), str(place)], check=True)
    if (found := find(tool, environment)) is None:
        raise NoPrometheusError(f"Debian's package of Prometheus has no {tool}")
    return found


class PrometheusClient:
    """Asks a Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def query(self, query: str) -> list[dict[str, Any]]:
        """The series of an instant query now.

        Raises:
            ValueError: it refuses the query; the message is its own.
            OSError: it does not answer.
        """
        found = self._get("query", query=query)
        if found["resultType"] == "scalar":
            return [{"metric": {}, "value": found["result"]}]
        series: list[dict[str, Any]] = found["result"]
        return series

    def names(self) -> set[str]:
        """The names of all metrics that it has."""
        return set(self._get("label/__name__/values"))

    def alarms(self) -> dict[str, str]:
        """Alarm -> its state: pending or firing."""
        return {each["labels"]["alertname"]: each["state"] for each in self._get("alerts")["alerts"]}

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes, with ``health`` and ``lastError``."""
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def _get(self, path: str, **arguments: str) -> Any:
        address = f"{self._base}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error).get("error", str(error))) from error
