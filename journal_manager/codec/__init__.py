"""The hot path of a replay: frames of edits cut in a row, and whole bodies of HDFS's edits read by their fields.

Which fields a body has is said by their shapes, so that this room knows no op code.
The compiled codec is used where it was built, the Python one elsewhere; ``BK_CODEC=pure`` in the environment forces the
latter. Both give the same results.

pure    both functions in Python
native  the same, compiled: typed Cython in pure-Python syntax
shapes  the shapes of fields
"""

import os
from typing import TYPE_CHECKING

from journal_manager.codec import pure
from journal_manager.codec.shapes import MAX_FIELDS, BodyDecoder, Field, FieldReader, Shape

if TYPE_CHECKING or os.environ.get("BK_CODEC") == "pure":
    _codec = pure
else:
    try:
        from journal_manager.codec import native as _codec
    except ImportError:
        _codec = pure

read_frames = _codec.read_frames
body_decoder = _codec.body_decoder

__all__ = ["MAX_FIELDS", "BodyDecoder", "Field", "FieldReader", "Shape", "body_decoder", "read_frames"]
