"""The compiled codecs under AddressSanitizer and UndefinedBehaviorSanitizer, fed hostile bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "bookkeeper" / "codec" / "native"
PARTS = ("adds", "reads", "records")
FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]


def sanitizer(name: str) -> str | None:
    """The compiler's runtime library, if it is installed."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = found.stdout.strip()
    return path if Path(path).is_absolute() and Path(path).exists() else None


def build(directory: Path, *modules: Path) -> Path:
    """Modules, translated by Cython and compiled with both sanitizers."""
    pytest.importorskip("Cython", reason="Cython is not installed")
    if sanitizer("libasan.so") is None or sanitizer("libubsan.so") is None:
        pytest.skip("gcc with libasan and libubsan is not installed")
    directory.mkdir(exist_ok=True)
    for module in modules:
        source, extension = directory / f"{module.stem}.c", directory / f"{module.stem}.so"
        translate = [sys.executable, "-m", "cython", "-3", str(module), "-o", str(source)]
        subprocess.run(translate, check=True, cwd=ROOT, capture_output=True)
        include = ["-I", sysconfig.get_paths()["include"], "-I", str(SOURCES)]
        compile_ = ["gcc", *FLAGS, "-fPIC", "-shared", *include, str(source), "-o", str(extension)]
        subprocess.run(compile_, check=True, capture_output=True)
    return directory


@pytest.mark.timeout(300)
def test_hostile_frames_stay_in_bounds(tmp_path: Path) -> None:
    build(tmp_path, *(SOURCES / f"{part}.py" for part in PARTS))
    run("hostile_frames.py", tmp_path, 300)


@pytest.mark.timeout(300)
def test_hostile_edits_and_entries_stay_in_bounds(tmp_path: Path) -> None:
    build(tmp_path / "edits", ROOT / "journal_manager" / "codec" / "native.py")
    build(tmp_path / "lone", ROOT / "segments" / "codec" / "native.py")
    run("hostile_readers.py", tmp_path, 10)


def run(script: str, extensions: Path, rounds: int) -> None:
    """Run a script with the extensions, which says so if nothing was wrong."""
    asan, ubsan = sanitizer("libasan.so"), sanitizer("libubsan.so")
    environment = os.environ | {
        "LD_PRELOAD": f"{asan} {ubsan}",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
        "BK_CODEC": "pure",
    }
    command = [sys.executable, str(Path(__file__).with_name(script)), str(extensions), str(rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "nothing read or written out of bounds" in done.stdout
