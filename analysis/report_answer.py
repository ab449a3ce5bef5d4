"""How the report opens: two sentences to quote, then all datasets in one figure."""

from __future__ import annotations

from dataclasses import dataclass

from lcat_analysis.across import Across, across_datasets
from lcat_analysis.compare import Comparisons
from lcat_analysis.forest import forest_figure
from lcat_analysis.headline import across_sentences, comparison_sentences
from lcat_analysis.rank_figure import rank_figure
from lcat_analysis.rank_tables import pairs_table, ranks_table
from lcat_analysis.ranking import Ranking, rank_models
from lcat_analysis.render import to_html
from lcat_analysis.report_parts import Block, Section, figure_block
from lcat_analysis.select import Selection
from lcat_core.errors import ResultsError

MAX_ROWS = 60  # of a forest plot


@dataclass
class Answer:
    """What the results say about all datasets together, as far as they allow it."""

    sentences: list[str]
    across: Across | None = None
    ranking: Ranking | None = None


def find_answer(selection: Selection, comparisons: Comparisons) -> Answer:
    """Summarise the results across datasets; with several settings per dataset, or a single dataset, dataset by dataset."""
    if selection.variants:
        varied = ", ".join(selection.variants)
        note = f"The runs vary {varied}, so there is no statement across datasets here."
        return Answer([*comparison_sentences(comparisons), note])
    across = across_datasets(comparisons, selection) if comparisons.has_pairs else None
    try:
        ranking = rank_models(selection, alpha=comparisons.alpha) if len(selection.datasets) > 1 else None
    except ResultsError:  # one model, or no dataset that all models have
        ranking = None
    sentences = across_sentences(across, ranking)
    if len(sentences) < 2:
        sentences += comparison_sentences(comparisons)
    return Answer(sentences, across, ranking)


def across_section(answer: Answer) -> Section | None:
    """Return the forest plot with its table, and the ranks."""
    blocks: list[Block] = []
    if answer.across is not None and len(answer.across.effects["dataset"].unique()) > 1:
        table = pairs_table(answer.across)
        caption = (
            f"Difference to the baseline on every dataset, with its {100 * (1 - answer.across.alpha):g} % interval. "
            "Diamond: pooled estimate (random effects), as wide as its interval."
        )
        if answer.across.effects["dataset"].nunique() <= MAX_ROWS:
            blocks.append(figure_block(forest_figure(answer.across), "forest", caption))
        blocks.append(Block(table=to_html(table, notes=False), notes=table.notes))
    if answer.ranking is not None:
        table = ranks_table(answer.ranking)
        caption = "Mean ranks. A bar connects models that do not differ significantly."
        figure = figure_block(rank_figure(answer.ranking), "ranks", caption)
        details = Block(table=to_html(table, notes=False), notes=table.notes, summary="Mean ranks as a table")
        blocks += [figure, details]
    return Section("across", "Across datasets", blocks=blocks) if blocks else None
