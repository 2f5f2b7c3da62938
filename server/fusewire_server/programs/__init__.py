"""Known programs: entries, quotas, costs, counters. Pure."""
