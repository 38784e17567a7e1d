"""WebHDFS over HTTP.

``http_server`` is the shell; it and ``http_connection`` alone know the HTTP library. ``head_size`` limits the head of a
request, ``origins`` refuses what pages of other sites send. ``request`` is what operations see of a request and what
they answer; ``operations`` performs them, ``two_steps`` those that move the bytes of files. ``parameters`` reads
queries, ``replies`` writes the JSON, ``blocks`` and ``checksum`` say of a file what HDFS would, and ``rates`` holds
callers to their quota. ``oauth2`` grants access tokens; ``request_audit`` and ``request_metrics`` tell of requests.
"""
