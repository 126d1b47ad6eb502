"""Release what a job file describes, where a platform starts Python files: python jobs/release.py JOB.yaml"""

import sys

from dpmask.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
