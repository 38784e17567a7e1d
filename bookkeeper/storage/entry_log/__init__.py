"""Entry logs: where entries live once the journal has made them durable.

entry_logs       all logs of a directory: how far each is filled, and with which ledgers
entry_log_file   the format of one log: records in order
write_behind     writes the logs to the disk in steps between checkpoints
"""
