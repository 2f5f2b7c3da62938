"""The programs that are known: entries, quotas, costs, counters. Pure."""
