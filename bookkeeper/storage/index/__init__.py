"""The index: where each entry lies in the entry logs, and what else is known of its ledger.

entry_index         the places of a ledger's entries, in memory
ledger_descriptor   master key, fence, explicit LAC; as records of the journal and as rows of a segment
moved_entries       new places for entries that were copied
segment_table       what stays in memory of an index segment
index_segment       the file: what one checkpoint adds to the index of all ledgers
"""
