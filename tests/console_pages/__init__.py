"""The console in a real browser: ``make console-pages``. Each page is opened and clicked through, in light and dark, at
400 and 1,600 pixels; what a browser complains of, loads from elsewhere or cannot fit is a failure. Then pages of other
origins try to read, frame, change and connect to the console, the HTTP API, the WebHDFS gateway and its metrics.

browser   finds Chromium, and makes an environment with Playwright
stage     a cluster in this process with something to see, and its console
walk      what is clicked and looked at; it runs in the environment with Playwright
hostile   the servers that pages of somebody else try to use, and whether anything was changed
hostile_page   what those pages try; it runs in the environment with Playwright
"""
