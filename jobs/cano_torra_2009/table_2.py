"""Scenario S1 of Cano and Torra (2009), Table II, on the CASC census data, beside what the paper printed.

python jobs/cano_torra_2009/table_2.py CENSUS.csv
"""

import sys
import warnings

import pandas as pd

import dpmask

PRINTED = {
    2: 44.677,
    3: 32.614,
    4: 26.668,
    5: 21.797,
    6: 18.357,
    7: 16.249,
    8: 13.495,
    9: 12.941,
    10: 11.424,
    11: 10.249,
    12: 9.104,
    13: 8.449,
    14: 8.551,
    15: 7.164,
    "A": 49.163,
    "B": 49.164,
    "C": 9.522,
}


def main(path: str) -> None:
    census = pd.read_csv(path).astype(float)
    names = list(census.columns)
    columns = {
        "dependents": [names[n - 1] for n in (1, 3, 4, 6, 7, 9, 11, 12, 13)],
        "independents": [names[n - 1] for n in (2, 8, 10)],
    }
    print("              paper  dpmask  interval    released\nmodels          PIL     PIL  disclosure  unchanged")
    for which, printed in PRINTED.items():
        if isinstance(which, str):
            method, label = dpmask.IPSO(variant=which, **columns), f"IPSO-{which}"
        else:
            method, label = dpmask.RegressionSynthesis(clusters=which, minimum_size=1, **columns), str(which)
        fitted = method.fit(census, seed=1)
        masked = fitted.mask(census)
        loss = dpmask.utility.probabilistic_information_loss(census, masked, columns=columns["dependents"])
        risk = dpmask.risk.interval_disclosure(census, masked, columns=columns["dependents"])
        share = sum(column.reproduced for column in fitted.figures.columns) / len(fitted.figures.columns)
        print(f"{label:10} {printed:8.1f} {loss.value:7.1f} {risk.rate:11.1%} {share:10.1%}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
