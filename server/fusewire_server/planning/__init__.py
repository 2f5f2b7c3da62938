"""The way from programs to loaded plans: requests, worker processes, loading."""
