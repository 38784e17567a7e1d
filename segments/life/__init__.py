"""What becomes of a stream after it was written.

Pure:
retention        which segments go, and why each one stays
holds            named pins on ranges
findings         what can be wrong with a stream, and how its record is put right
scan             what a segment's entries say that it holds
bundle           the file that a stream is exported to
checked_json     small values in the metadata store

Shells:
truncation       readers begin at an exact record
retention_pass   decides and removes; now and then
removal          ledgers that are out of the chain are deleted
hold_record      the holds at their path
deletion         a stream goes in steps; ledgers that no stream names
directory        listing, renaming, listeners
settings         the settings at their path
transfer         export to a file, import from one
checker          verifies streams, and repairs their records
chain_steps      changes of the record by somebody who is not the writer
"""
