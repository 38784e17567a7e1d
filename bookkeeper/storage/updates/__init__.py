"""What changes a ledger: adds, fences, explicit LACs, its removal.

ledger_updates   admits or refuses a change, records it, makes it visible
record_runs      the form in which entries come in
lac_waiters      who waits for a last add confirmed
"""
