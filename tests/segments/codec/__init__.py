"""Tests of the codec of lone entries: each for the one in Python and the compiled one."""

from __future__ import annotations

from types import ModuleType

import pytest

from segments.codec import pure

native: ModuleType | None
try:
    from segments.codec import native as _native

    native = _native if hasattr(_native, "append_results") else None  # else it was built from an earlier version
except ImportError:
    native = None

needs_native = pytest.mark.skipif(native is None, reason="the compiled codec is not built (python setup.py build_ext)")
CODECS = [pytest.param(pure, id="pure"), pytest.param(native, id="native", marks=needs_native)]
"""For ``@pytest.mark.parametrize("codec", CODECS)``."""
