"""Text of whole algorithms, with `$` placeholders for what differs by dtype."""
