"""``python -m policygraph`` is the command ``policygraph``."""

from policygraph.cli import main

if __name__ == "__main__":
    main()
