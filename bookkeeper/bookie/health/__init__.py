"""Health and metrics of a bookie over HTTP, for probes and for Prometheus.

health          what /livez, /readyz and /healthz answer, decided from the bookie's state (pure)
health_server   the port
health_pages    the pages, with the metrics
bookie_metrics  the gauges that are read when somebody asks
"""
