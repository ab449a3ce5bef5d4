"""How many more seeds? The number of pairs with which a test would show a difference of a stated size."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lcat_analysis.cells import MISSING, Cell, Row, Table, key_name, number_cell, show
from lcat_analysis.compare import Comparisons, pair_name
from lcat_analysis.paired import POWER, power_of_test
from lcat_analysis.sweep_folder import Sweep
from lcat_core.archive import is_archive
from lcat_core.errors import ResultsError

#: More pairs than this are not worth planning.
MOST_PAIRS = 10_000
#: The true sd is below its upper confidence limit at this level; Browne (1995) recommends it for planning.
_SD_LEVEL = 0.8
_OPEN = ("undetermined", "suggestive")


def pairs_needed(
    difference: float, sd: float, alpha: float = 0.05, power: float = POWER, overlap: float = 0.0
) -> int | None:
    """Return the smallest number of pairs that show a true difference with this power; None above `MOST_PAIRS`.

    Args:
        difference: The true difference.
        sd: Standard deviation of the paired differences.
        overlap: As for `paired_test`; splits that share nodes never add up to certainty.
    """
    if sd == 0:  # n equal differences have the p of the signed-rank test, 2^(1-n)
        return math.floor(1 - math.log2(alpha)) + 1

    def suffices(n: int) -> bool:
        effect = abs(difference) / (sd * math.sqrt(1 / n + overlap)) / math.sqrt(n)
        return power_of_test(effect, n, alpha) >= power

    high = 2
    while not suffices(high):
        if high >= MOST_PAIRS:
            return None
        high = min(2 * high, MOST_PAIRS)
    low = max(high // 2, 1)  # does not suffice, or is no test
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def plan_seeds(
    comparisons: Comparisons, difference: float | None = None, power: float = POWER
) -> tuple[pd.DataFrame, float]:
    """Return, for every tested pair, how many pairs of runs would be needed, and the difference this is for.

    ``needed`` is for the plain p, ``needed_holm`` for Holm's p in the worst case (α divided by the tests of the family), and
    ``needed_cautious`` for Holm's p if the sd is as large as these runs allow (its upper 80 % limit).

    Raises:
        ResultsError: The difference is not positive, or unknown because the metric has no default margin; or a bad power.
    """
    difference = comparisons.margin if difference is None else difference
    if difference is None:
        raise ResultsError(
            f"say which difference of {comparisons.measure.label} matters, for example --difference 0.01"
        )
    if not 0 < difference < math.inf:
        raise ResultsError(f"the difference must be positive, got {difference}")
    if not 0 < power < 1:
        raise ResultsError(f"the power must be between 0 and 1, got {power}")
    tested = comparisons.tested
    if comparisons.family == "all":
        sizes = np.full(len(tested), len(tested))
    else:
        sizes = tested.groupby(comparisons.family)["n"].transform("size").to_numpy()
    rows = []
    for row, tests in zip(tested.to_dict("records"), sizes, strict=True):
        sd, n = row["sd"], row["n"]
        overlap = max((row["error"] / sd) ** 2 - 1 / n, 0.0) if sd > 0 else 0.0
        overlap = overlap if comparisons.unit == "split" else 0.0
        largest_sd = sd * math.sqrt((n - 1) / stats.chi2.ppf(1 - _SD_LEVEL, n - 1))
        keys = ("model", "baseline", "dataset", *comparisons.variants, "verdict", "n", "sd")
        found = {key: row[key] for key in keys}
        for name, level, spread in (
            ("needed", comparisons.alpha, sd),
            ("needed_holm", comparisons.alpha / tests, sd),
            ("needed_cautious", comparisons.alpha / tests, largest_sd),
        ):
            found[name] = pairs_needed(difference, spread, level, power, overlap)
        rows.append(found)
    return pd.DataFrame(rows), difference


def plan_table(comparisons: Comparisons, difference: float | None = None, power: float = POWER) -> Table:
    """Return the plan as a table, with what to do in its notes; see `plan_seeds`."""
    plan, difference = plan_seeds(comparisons, difference, power)
    digits = comparisons.measure.digits
    names = ("needed", "needed_holm", "needed_cautious")
    rows, previous = [], None
    for row in plan.to_dict("records"):
        pair = pair_name(row["model"], row["baseline"])
        labels = (pair, *(show(row[key]) for key in ("dataset", *comparisons.variants)))
        numbers = [_count_cell(row[name]) for name in names]
        cells = [Cell(row["verdict"]), Cell(str(row["n"]), sort=row["n"]), number_cell(row["sd"], digits), *numbers]
        rows.append(Row(labels, cells, previous not in (None, pair)))
        previous = pair
    unit = "splits" if comparisons.unit == "split" else "pairs of runs"
    amount = f"{difference:g} {comparisons.measure.unit}".rstrip()
    notes = [
        f"Needed: {unit} with which a true difference of {amount} gives p < {comparisons.alpha:g} in {100 * power:g} % of all "
        "repetitions, if the sd of the differences is the one observed. After Holm: the same for Holm's p, in the worst "
        f"case that no other test of the family rejects. Cautious: after Holm, if the sd is its upper {100 * _SD_LEVEL:g} % limit, "
        "because an sd of few runs is uncertain.",
    ]
    if plan[list(names)].isna().any(axis=None):
        why = ", or unattainable, because splits of one graph share nodes" if comparisons.unit == "split" else ""
        notes.append(f"{MISSING}: more than {MOST_PAIRS:,}{why}.")
    columns = ["Verdict", "n", "sd", "Needed", "After Holm", "Cautious"]
    label_names = ["Pair", "Dataset", *map(key_name, comparisons.variants)]
    title = f"Runs needed to show a difference of {amount}"
    return Table(title, label_names, columns, rows, notes, plan, left=("Verdict",))


def _count_cell(count: float | None) -> Cell:
    known = count is not None and math.isfinite(count)
    return Cell(f"{int(count)}", sort=count) if known and count is not None else Cell(MISSING)


def plan_command(comparisons: Comparisons, plan: pd.DataFrame, sweeps: Sequence[Sweep], source: Path) -> str:
    """Say how to run the seeds that would decide the open pairs of the folder or archive ``source``."""
    open_pairs = plan[plan["verdict"].isin(_OPEN)]
    needed = open_pairs["needed_holm"].dropna()
    if open_pairs.empty:
        return "Every pair is decided: nothing to run."
    if needed.empty:
        return "No number of runs worth planning decides the open pairs."
    pairs = int(needed.max())
    if pairs <= open_pairs["n"].min():
        return (
            "The open pairs have enough runs already: if the true difference were that large, they would most "
            "likely have shown it."
        )
    if comparisons.unit == "split":
        return f"To decide the open pairs, run {pairs} splits: list them as the axis `dataset.split_seed` of the grid."
    seeds = -(-pairs // max(comparisons.splits, 1))
    grids = [sweep for sweep in sweeps if sweep.grid.get("name")]
    if len(grids) != 1:
        return f"To decide the open pairs, run {seeds} seeds."
    folder, place = grids[0].path, shlex.quote(str(source))
    if is_archive(source):
        command = f"lcat sweep {shlex.quote(grids[0].name)} seeds {seeds} --known {place}"
    else:
        command = f"lcat sweep {shlex.quote(str(folder / 'grid.yaml'))} seeds {seeds}"
        command += "" if folder.parent == Path("results") else f" out_dir {shlex.quote(str(folder.parent))}"
    return f"To decide the open pairs (finished runs are kept):\n  {command}"
