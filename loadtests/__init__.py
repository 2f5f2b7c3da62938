"""Load tests and benchmarks.

`loadtests/README.md` says how they measure, and how to read what they tell.
"""
