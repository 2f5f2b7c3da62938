"""What is known of each program: its entry, quota, costs and counters. Pure."""
