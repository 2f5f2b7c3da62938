"""The programs that the server knows: entries, quotas, costs, counters. Pure."""
