"""Builds the compiled codecs where Cython and a C compiler are present; everything else is in pyproject.toml.

Without them, or if compiling fails, the install goes on and the codec in Python runs: same results, slower.
"""

from __future__ import annotations

import sys
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


def say(reason: str) -> None:
    first, *_ = reason.splitlines()
    sys.stderr.write(f"bookkeeper: the run codec in Python is used ({first[:160]})\n")


MODULES = (
    "bookkeeper.codec.native.adds",
    "bookkeeper.codec.native.reads",
    "bookkeeper.codec.native.records",
    "journal_manager.codec.native",
    "segments.codec.native",
)


class OptionalBuildExt(build_ext):
    """An extension that cannot be built is left out, in one line."""

    failed = False

    def run(self) -> None:
        try:
            super().run()
        except Exception as exc:
            if not self.failed:
                say(f"not compiled: {exc}")

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as exc:
            if not self.failed:
                say(f"not compiled: {exc}")
            self.failed = True


def extensions() -> list[Any]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        say("no Cython")
        return []
    native = "bookkeeper/codec/native"
    shared = [f"{native}/{name}" for name in ("primitives.pxd", "crc.pxd", "crc.h", "tuples.pxd", "tuples.h")]
    codec = [
        Extension(
            module,
            [f"{module.replace('.', '/')}.py"],
            include_dirs=[native],
            depends=shared,
            extra_compile_args=["-O2"] if sys.platform != "win32" else [],
            optional=True,
        )
        for module in MODULES
    ]
    try:
        return list(cythonize(codec, build_dir="build/cython", quiet=True))
    except Exception as exc:
        say(f"not translated: {exc}")
        return []


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuildExt})
