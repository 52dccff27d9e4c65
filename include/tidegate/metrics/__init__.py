"""Monitoring: figures with stable names, for Prometheus and OpenTelemetry, and alerts on them.

In:  views of pipelines (tidegate.pipelines), and capture's own status on this machine.
Out: catalogue: every metric, its labels and its meaning. measured: samples of a view. exporting:
     the two exporters. rules: the one list of alerts. notices: when an alert begins and ends.
"""
