"""Text of whole algorithms, with `$` placeholders."""
