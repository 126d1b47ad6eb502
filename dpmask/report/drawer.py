"""Draws charts for another process: a request in each line of stdin, its SVG or null in each line of stdout.

It is run as a program of its own, ``python drawer.py FOLDER``, with the folder that vl_convert lies in: what the
converter cannot draw may end this process, and no other. It imports nothing of dpmask.
"""

import json
import resource
import sys

_CPU_SECONDS = 300


def main() -> None:
    """Draw until stdin ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.append(sys.argv[1])
    import vl_convert

    for line in sys.stdin:
        try:
            drawn = vl_convert.vegalite_to_svg(json.loads(line), allowed_base_urls=[])
        except ValueError:
            drawn = None
        sys.stdout.write(json.dumps(drawn) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
