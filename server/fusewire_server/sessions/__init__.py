"""Sessions as plain tables: what each holds, is owed and may do, and what its frames change. Pure."""
