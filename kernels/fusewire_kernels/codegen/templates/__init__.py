"""Text of whole algorithms, with `$` placeholders for parts that differ by dtype."""
