"""Child processes: what they are told and report, and how they are kept running."""
