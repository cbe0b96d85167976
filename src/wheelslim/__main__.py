"""``python -m wheelslim``."""

from wheelslim.cli.app import main

if __name__ == "__main__":
    main()
