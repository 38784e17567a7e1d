"""What becomes of a stream after it was written.

holds          named pins on ranges
retention      which segments go, and why each one stays
findings       what can be wrong with a stream, and how its record is put right
scan           what a segment's entries say that it holds
bundle         the file that a stream is exported to
checked_json   small values in the metadata store
chain_steps    changes of the record by somebody who is not the writer
"""
