"""``python -m dpmask.cli``."""

from dpmask.cli import main

if __name__ == "__main__":
    main()
