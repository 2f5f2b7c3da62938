"""Programs as steps of one op each. Pure."""
