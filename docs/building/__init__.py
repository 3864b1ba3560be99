"""How the documentation is built: blocks that are run, numbers and pictures from records, the commands' reference."""
