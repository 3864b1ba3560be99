"""The experiments as data: TOML files, expanded to runs."""
