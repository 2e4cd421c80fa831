"""Benchmarks: how long irrun takes, and how much memory, beside OpenVINO and other runtimes. See run.py."""
