"""What changes a ledger: adds, fences, explicit LACs, its removal.

ledger_updates   records a change, and makes it visible
fencing          how a fence becomes durable, and which adds a ledger takes
record_runs      the form in which entries come in
lac_waiters      who waits for a last add confirmed
"""
