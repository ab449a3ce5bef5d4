"""The winner of a search: for each dataset, the configuration with the best mean validation metric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from lcat_analysis.select import NOT_SET, Selection
from lcat_analysis.tables import summarise
from lcat_core.errors import ResultsError
from lcat_core.models import display_name
from lcat_core.run_folder import read_result
from lcat_core.settings import Settings
from lcat_core.text import count

#: Settings of one run that a configuration for new runs must not fix.
_OF_ONE_RUN = ("seed", "out_dir", "run_dir", "cfg_dest")


@dataclass(frozen=True)
class Winner:
    """The best configuration on one dataset.

    Attributes:
        values: What distinguishes it from the other configurations, by key.
        validation: Its mean validation metric, and its test metric, as text.
        competitors: How many configurations it was chosen from.
        settings: Everything that differs from the defaults, without the seed.
        seeds: The seeds of its runs.
    """

    dataset: str
    model: str
    values: dict[str, Any]
    validation: str
    test: str
    competitors: int
    settings: Settings
    seeds: list[int]

    def describe(self) -> str:
        """Return a few lines for the terminal."""
        lines = [
            f"{self.dataset}: {display_name(self.model)}, best of {self.competitors} by {self.validation}; {self.test}"
        ]
        return "\n".join([*lines, *(f"  {key} {value}" for key, value in self.values.items())])

    def configuration(self, source: str) -> str:
        """Return a file for ``lcat run``."""
        head = f"# {display_name(self.model)} on {self.dataset}, from {source}: best of {self.competitors} configurations by\n"
        head += f"# {self.validation}; {self.test}. One run; `lcat run --repeat N` trains N seeds.\n"
        tree: dict[str, Any] = {}
        for key, value in self.settings.items():
            *groups, name = key.split(".")
            node = tree
            for group in groups:
                node = node.setdefault(group, {})
            node[name] = value
        return head + yaml.safe_dump(tree, sort_keys=True, allow_unicode=True, default_flow_style=None)


def winners(selection: Selection) -> list[Winner]:
    """Return the best configuration of each dataset, over all models; the test set chooses nothing.

    Raises:
        ResultsError: No run recorded the validation metric, or the runs do not record their settings.
    """
    found = []
    keys = ["model", *selection.variants, *selection.over]
    for dataset in selection.datasets:
        own = selection.choices[selection.choices["dataset"] == dataset]
        score = (selection.by_measure.sign * own["val_mean"]).where(own["chosen"])
        if score.notna().any():
            best = own.iloc[int(np.nanargmax(score.to_numpy(float)))]
            found.append(_winner(selection, dataset, {key: best[key] for key in keys}, best, len(own)))
    if not found:
        raise ResultsError(f"no run recorded {selection.by}, so there is nothing to choose the best by")
    return found


def _winner(selection: Selection, dataset: str, values: dict[str, Any], row: pd.Series, competitors: int) -> Winner:
    runs = selection.runs[selection.runs["dataset"] == dataset]
    for key, value in values.items():
        runs = runs[runs[key] == value]
    result = read_result(Path(runs["path"].iloc[0]))
    if result is None or not result.settings:
        raise ResultsError(f"{runs['path'].iloc[0]} does not record its settings, so no configuration can be written")
    test = summarise(runs["value"].to_numpy(float))
    measure, by = selection.measure_of(dataset), selection.by_measure
    deviation = f" ± {test.sd:.2f}" if test.sd is not None else ""
    model = str(values.pop("model"))
    return Winner(
        dataset,
        model,
        {key: value for key, value in values.items() if value != NOT_SET},
        f"mean {selection.by} {row['val_mean'] * by.factor:.2f} over {count(int(row['n']), 'run')}",
        f"test {measure.label} {test.mean:.2f}{deviation}",
        competitors,
        {key: value for key, value in result.settings.items() if key not in _OF_ONE_RUN},
        sorted(map(int, runs["seed"])),
    )
