"""What of a stream goes, and what keeps it: truncation, retention, holds, deletion.

Pure:
retention        which segments go, and why each one stays
stagings         ledgers that are written and not published yet
holds            named pins on ranges
checked_json     small values in the metadata store

Shells:
truncation       readers begin at an exact record
retention_pass   decides and removes; now and then
removal          ledgers that are out of the chain are deleted
deletion         a stream goes in steps; ledgers that no stream names
hold_node      the holds at their path
cursor_positions    where the cursors of a stream stand
agreed_time      the time by which something may be removed
chain_steps      changes of the node by somebody who is not the writer
"""
