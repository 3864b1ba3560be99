"""The paper's experiments as data: TOML files → runs → a store → statistics → tables."""
