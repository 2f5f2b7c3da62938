"""Load generator, scenarios and the peers they are measured against."""
