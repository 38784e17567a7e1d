"""Health and metrics of a bookie over HTTP, for probes and for Prometheus.

health          what /livez, /readyz and /healthz answer, decided from the bookie's state (pure)
health_server   the port
health_pages    the pages, with the metrics
metadata_contact  whether the metadata store can be reached, and whose fault it is if not
own_lag         how long this process was not run
apache_names, apache_routes
                numbers and probes as Apache's bookies have them
bookie_metrics  the gauges that are read when somebody asks
"""
