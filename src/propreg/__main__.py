"""``python -m propreg`` is the ``propreg`` command."""

from propreg.cli import main

if __name__ == "__main__":
    main()
