"""From programs to loaded plans: requests, worker processes, loading."""
