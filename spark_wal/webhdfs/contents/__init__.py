"""Bytes of files: uploads in progress, and blobs for files that are too large for the journal.

uploads, upload_log         bytes that arrive; a log of which uploads a gateway that was killed cut off
blob_store, ledger_blobs    blobs: the interface, and blobs as ledgers
"""
