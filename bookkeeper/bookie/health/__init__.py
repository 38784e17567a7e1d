"""Whether a bookie is well: what it says over HTTP to probes and to Prometheus.

health         what /livez, /readyz and /healthz answer, decided from the bookie's state (pure)
health_server  the port
health_pages   the pages, with the metrics
"""
