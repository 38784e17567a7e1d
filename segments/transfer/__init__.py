"""Streams as files: export, and import with positions kept.

bundle      the file's format (codec)
transfer    writes it from a stream, makes a stream of it
"""
