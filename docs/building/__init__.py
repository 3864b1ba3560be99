"""What ``docs/build.py`` writes into the pages, what it checks, and how Sphinx shows them."""
