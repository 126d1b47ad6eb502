"""``python -m dpmask``."""

from dpmask.cli import main

if __name__ == "__main__":
    main()
