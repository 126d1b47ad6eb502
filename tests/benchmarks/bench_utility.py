"""All utility measures of two lakes of 10 million records and 13 columns, pMSE apart: at most 4 passes and 6 reads of CPU.

python tests/benchmarks/bench_utility.py [--rows 1e7] [--rounds 1] [--folder DIR]

The original is a numeric lake, the masked one the same with noise of a tenth of each standard deviation, written to a lake of
its own. CPU is that of a process each: one that reads both lakes once into arrays, one that takes all measures with
`dpmask.utility.summarise`, one that takes pMSE; imports are in all of them. Passes are counted by listening to the engine.
"""

from common import COLUMNS, DPMASK, cpu_of, in_folder, noise_job, numeric_lake, say, within_limits

FULL = 10_000_000
OPEN = """
import sys
import dpmask
from dpmask.engine.progress import listening
lakes = [dpmask.read_lake(folder, block_rows=int(sys.argv[4])) for folder in sys.argv[1:3]]
columns = lakes[0].schema.names
"""
READ = """
def touch(found):
    return [column[:1].sum() for column in found]
for lake in lakes:
    lake.floats(columns).map(touch, "read")
"""
MEASURE = """
passes = []
with listening(lambda label, done, total: passes.append(label) if done == 0 and total else None):
    found = dict(dpmask.utility.summarise(*lakes, columns=columns))
open(sys.argv[3], "w").write(f"{len(passes)} {found['probabilistic_information_loss'].value}")
"""
PROPENSITY = """
open(sys.argv[3], "w").write(str(dpmask.utility.propensity(*lakes, columns=columns).value))
"""


def main(arguments=None):
    return in_folder(measure, __doc__, rounds=1, arguments=arguments)


def measure(folder, rows, rounds):
    block_rows = min(rows // 4, 250_000)
    lake = numeric_lake(folder / "lake", rows, block_rows)
    cpu_of(DPMASK, "run", noise_job(folder, block_rows, order="input"))
    given = lake, folder / "release", folder / "told", block_rows
    codes = {"read": READ, "propensity": PROPENSITY, "measures": MEASURE}
    seconds = [{name: cpu_of(OPEN + code, *given) for name, code in codes.items()} for _ in range(rounds)]
    cpu = {name: min(one[name] for one in seconds) for name in codes}  # all of a round under the same load
    passes, loss = (folder / "told").read_text().split()
    ratio = cpu["measures"] / cpu["read"]
    say(
        benchmark="utility",
        rows=rows,
        columns=len(COLUMNS),
        cpu=cpu,
        reads=ratio,
        full=rows >= FULL,
        at_most={"reads": 6, "passes": 4},
        passes=int(passes),
        probabilistic_information_loss=float(loss),
    )
    return ratio, int(passes)


if __name__ == "__main__":
    within_limits(main)
