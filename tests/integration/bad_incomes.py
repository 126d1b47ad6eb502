"""Frames that no method takes: what is done to a good one, and how it is refused."""

import numpy as np
import pandas as pd

from dpmask.errors import InputError, JobError

BAD_INCOMES = [
    (lambda f: f.assign(income=1.0), InputError, "is constant"),
    (lambda f: f.assign(income=np.nan), InputError, "has no value in any record"),
    (lambda f: f.iloc[:1], InputError, "has a value in one record only"),
    (lambda f: f.iloc[:0], InputError, "has no value in any record"),
    (lambda f: f.assign(income="a"), JobError, "must be numeric; it is"),
    (lambda f: f.drop(columns="income"), JobError, "there is no column 'income'"),
    (lambda f: pd.concat([f, f[["income"]]], axis=1), InputError, "more than one column 'income'"),
]
