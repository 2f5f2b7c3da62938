"""From programs to loaded plans."""
