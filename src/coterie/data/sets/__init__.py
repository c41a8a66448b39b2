"""Named data sets: built-in, stored, derived and generated."""
