"""A Python for Spark's workers that begins quickly."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path


def worker_python(python: str, directory: Path) -> str:
    """Make a program that is ``python`` with its own installed PySpark in front of Spark's archive of it.

    Spark puts ``pyspark.zip`` first. What is imported from an archive is compiled anew by every process: three times
    the processor time until a worker answers. Spark waits ten seconds for that and has no setting for it, so on a
    tenth of a core no worker of a streaming source would ever begin. It is the same PySpark, from its files.
    """
    asked = "import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('pyspark').origin)))"
    found = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    program = directory / "worker-python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(found)}"${{PYTHONPATH:+:$PYTHONPATH}}" exec {shlex.quote(python)} "$@"\n'
    )
    program.chmod(0o700)
    return str(program)
