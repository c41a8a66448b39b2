"""Settings that the papers give for a data set, one TOML file for each method."""
