"""Entry logs: where entries live once the journal has made them durable.

entry_logs       all logs of a directory: who lies where, how far they are filled
entry_log_file   one log: records in order
write_behind     logs go to the disk in steps between checkpoints
"""
