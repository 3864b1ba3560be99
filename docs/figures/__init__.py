"""The pictures of the pages, each beside the module that computes (``data``) and draws it (``draw``, ``picture``)."""
