"""Directories as released versions have left them: what is stored stays readable.

``tests/samples/<version>/*.tar.gz`` were written once, by ``python -m tests.samples``, and are never written again: a
new version adds a directory of its own beside them.
"""
