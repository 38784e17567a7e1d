"""The console: pages that show a cluster in a browser. They only show, unless an option names what they may change.

    request -> service (who asks) -> pages (which page) -> views (what it shows) -> templates (HTML) -> reply
                                       |
                                       `- resident (values that are read in the background, and kept)

panels       what other packages show there: the interface, and its data (pure)
config       its settings
resident     values that take long to make, kept, and made again while somebody looks
cells        values as a page shows them (pure)
blocks       facts, tables and notes as a page shows them (pure)
drawing      a ledger's fragments and copies as a picture (pure)
ledger_list  all ledgers, found by state, health and bookie (pure)
picture      what is known of a cluster at one moment, and how it is read
panel_book   the panels of installed packages
views        what each page shows (pure)
templates    HTML, by Jinja
pages        which page a request means
actions      what pages may change
service      the server
process      the same as a process
"""
