"""The console: pages that show a cluster in a browser.

panels   what other packages show there: the interface, and its data (pure)
"""
