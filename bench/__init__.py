"""Benchmarks: each prints times, and ratios against a named baseline measured in the same run."""
