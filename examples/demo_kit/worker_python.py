"""A Python for Spark's workers that begins quickly. For tests, the demos and benchmarks; users are told in
docs/spark-data.md."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError

_WHERE: Final = "import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('pyspark').origin)))"


def worker_python(python: str, directory: Path) -> str:
    """Make a program that is ``python`` with its own installed PySpark in front of Spark's archive of it.

    Spark puts ``pyspark.zip`` first. What is imported from an archive is compiled anew by every process: three times
    the processor time until a worker answers. Spark waits ten seconds for that and has no setting for it, so on a
    tenth of a core no worker of a streaming source would ever begin. It is the same PySpark, from its files.

    Args:
        python: an interpreter with PySpark.
        directory: where the program is put; it must stay while Spark runs.

    Returns:
        its path, for ``PYSPARK_PYTHON``.

    Raises:
        ConfigError: the interpreter has no PySpark, or does not run.
    """
    try:
        asked = subprocess.run([python, "-c", _WHERE], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(f"{python} does not say where its PySpark is; is PySpark installed there?") from error
    found = shlex.quote(asked.stdout.strip())
    program, new = directory / "worker-python", directory / "worker-python.new"
    new.write_text(f'#!/bin/sh\nPYTHONPATH={found}"${{PYTHONPATH:+:$PYTHONPATH}}" exec {shlex.quote(python)} "$@"\n')
    new.chmod(0o700)
    new.replace(program)  # another driver may start workers by it just now
    return str(program)
