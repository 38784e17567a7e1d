"""Tests of the codec of edits: each for the one in Python and the compiled one."""

from __future__ import annotations

from types import ModuleType

import pytest

from journal_manager.codec import pure

native: ModuleType | None
try:
    from journal_manager.codec import native as _native

    native = _native
except ImportError:
    native = None

needs_native = pytest.mark.skipif(native is None, reason="the compiled codec is not built (python setup.py build_ext)")
CODECS = [pytest.param(pure, id="pure"), pytest.param(native, id="native", marks=needs_native)]
"""For ``@pytest.mark.parametrize("codec", CODECS)``."""
