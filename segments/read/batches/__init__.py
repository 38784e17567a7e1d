"""What was fetched, until it is handed out.

entry_sequence    entries in order, and what is missing between them (pure)
ready_queue       what was fetched and not handed out (pure)
record_batch      records that are still in their entries
"""
