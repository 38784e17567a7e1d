"""A log per ledger (``entry_log_per_ledger``): records get their places at once, and their bytes come late.

ledger_logs        the machine: which log a record goes to, what is in memory, what is written, when a log ends
log_writes         the blocking part: writes the logs, makes their files, syncs and closes those that give way
ledger_log_layout  the shell: takes durable groups in, has logs written, and serves checkpoints

The journal, the index and the formats of files are those of the shared layout.
"""
