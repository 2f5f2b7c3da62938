"""From programs to loaded plans: the planner, its worker process, and the plans that are awaited."""
