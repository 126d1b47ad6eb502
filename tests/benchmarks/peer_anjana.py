"""anjana's k-anonymity in an interpreter of its own, as it asks for older numpy and pandas: prints CPU seconds and what came out.

python tests/benchmarks/peer_anjana.py TABLE.parquet LEVELS.json K SUPPRESSED
LEVELS.json maps every quasi-identifier to its levels, each a list with one value for each of the first level's.
"""

import json
import sys
import time

import numpy as np
import pandas as pd
from anjana.anonymity import k_anonymity


def main(table, levels, k, suppressed):
    frame = pd.read_parquet(table).astype(str)
    with open(levels, encoding="utf-8") as file:
        trees = {
            name: {number: np.array(level, dtype=object) for number, level in enumerate(one)}
            for name, one in json.load(file).items()
        }
    start = time.process_time()
    found = k_anonymity(frame, [], list(trees), int(k), float(suppressed), trees)
    seconds = time.process_time() - start
    groups = found.groupby(list(trees), observed=True).size() if len(found) else pd.Series([0])
    print(json.dumps({"cpu": seconds, "rows": len(found), "groups": len(groups), "smallest": int(groups.min())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
