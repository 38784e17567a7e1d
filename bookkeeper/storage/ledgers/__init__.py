"""Which ledgers are on a bookie's disk, and about which of them it cannot answer.

ledger_table       every ledger here, the deleted ones, what no checkpoint has written yet
known_ledgers      those that were asked for, and behind them what index segments know
resident_ledgers   the machine: which of them stay in memory
unknowns           limbo, index damage, doubt, suspicion: where a missing entry is answered "unknown"
"""
