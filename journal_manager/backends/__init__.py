"""The stores in which journals live. Entry points find them; the framework never imports them.

bookkeeper                     ``bk:``, on ledgers
file, file_directory, file_format, file_snapshots, files, blocking_steps
                               ``file:``, in a directory: the backend; its steps, bytes, lock and snapshots; the file
                               system; steps off the loop
journal_set, set_copies        ``set:``, several journals as one
memory                         ``mem:``, in this process
"""
