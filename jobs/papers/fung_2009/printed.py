"""Fung, Wang, Wang and Hung (2009): what the text prints of its figures; the values of bars and curves are not printed."""

BENEFIT = {  # of guiding by clusters over guiding by distortion, per cent, over k = 2, 6, 10
    ("Adult", "f", "basic k-means"): "24 to 125", ("Adult", "f", "bisecting k-means"): "34 to 66",
    ("Adult", "match", "basic k-means"): "28 to 85", ("Adult", "match", "bisecting k-means"): "5 to 32",
    ("CRX", "f", "basic k-means"): "40 to 155", ("CRX", "f", "bisecting k-means"): {2: "0", 6: "45", 10: "57"},
    ("CRX", "match", "basic k-means"): "9 to 60", ("CRX", "match", "bisecting k-means"): {2: "0", 6: "13", 10: "8"},
}  # fmt: skip
COST = {  # 1 - F or 1 - match point, per cent, over both algorithms
    ("Adult", "f"): {2: "2 to 20", 6: "2 to 20", 10: "to 33"}, ("Adult", "match"): "9 to 23",
    ("CRX", "f"): {2: "0 to 23", 6: "0 to 23", 10: "to 30"}, ("CRX", "match"): "0 to 20",
}  # fmt: skip
P_GUIDES = {  # one-tailed, on the 20 thresholds
    ("Adult", "f", "basic k-means"): {2: 5.02e-7, 6: 8.97e-25, 10: 6.14e-14},
    ("Adult", "f", "bisecting k-means"): {2: 7.44e-14, 6: 2.55e-6, 10: 4.72e-7},
    ("Adult", "match", "basic k-means"): {2: 7.94e-8, 6: 3.72e-22, 10: 1.67e-10},
    ("Adult", "match", "bisecting k-means"): {2: 5.71e-34, 6: 4.24e-5, 10: 1.07e-8},
    ("CRX", "f", "basic k-means"): {2: 2.24e-26, 6: 4.67e-17, 10: 1.40e-10},
    ("CRX", "f", "bisecting k-means"): {6: 4.25e-9, 10: 1.11e-10},
    ("CRX", "match", "basic k-means"): {2: 1.67e-16, 6: 8.50e-14, 10: 1.81e-6},
    ("CRX", "match", "bisecting k-means"): {6: 1.04e-9, 10: 1.06e-11},
}
P_QIDS = {  # one-tailed, on the 30 sets of QIDs
    ("Adult", "basic k-means"): {20: 4.20e-6, 50: 9.27e-6, 80: 2.27e-5},
    ("Adult", "bisecting k-means"): {20: 2.05e-9, 50: 2.49e-9, 80: 6.94e-8},
    ("CRX", "basic k-means"): {20: 2.12e-9, 50: 6.25e-6, 80: 3.12e-3},
    ("CRX", "bisecting k-means"): {20: 1.03e-12, 50: 2.49e-12, 80: 1.42e-12},
}
DROP = {  # from one algorithm on both sides to two, per cent
    "Adult": {"f": "33 to 78", "match": "16 to 50"},
    "CRX": {"f": "severe", "match": "severe"},
}


def at(printed: object, k: int) -> str:
    """What is printed for a number of clusters."""
    return str(printed.get(k, "-")) if isinstance(printed, dict) else str(printed)
