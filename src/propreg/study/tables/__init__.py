"""The paper's tables from recorded runs."""
