"""Programs as steps of one op each, for rows that run before their plan is made. Pure."""
