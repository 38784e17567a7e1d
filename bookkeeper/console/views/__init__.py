"""What each page of the console shows, made from what is known of the cluster. Pure: no HTML, and nobody is asked.

view           what all pages have: title, blocks, age, actions
cluster_view   racks and bookies; one bookie
ledgers_view   the list of ledgers; deleted ledgers
ledger_view    one ledger, with its drawing
repair_view    what lacks copies, and what is done about it
panel_view     the pages of panels
"""
