"""Bytes of files: on their way in, and where they live when they are too large for the journal."""
