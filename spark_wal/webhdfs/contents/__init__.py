"""Bytes of files: uploads in progress, and blobs for files that are too large for the journal."""
