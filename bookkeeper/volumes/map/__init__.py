"""Which volume has which ledger.

ledger_map         the placements, in memory: records and what they say together; pure
placement_file     their bytes
placement_log      writes records, and has them published
stored_ledger_map      both together: a change is in memory at once, and durable soon
"""
