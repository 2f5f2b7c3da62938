"""Plans as data, and how tables are filled. Pure."""
