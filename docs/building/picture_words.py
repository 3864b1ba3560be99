"""What the theory page says of its pictures, in words computed from the same numbers."""

from collections.abc import Callable
from statistics import fmean

from figures import fractional_depth, one_node
from propreg.study.figures.build import figure_data
from propreg.study.results import Results


def one_node_values() -> dict[str, str]:
    """What each φ makes of the node in the picture."""
    return {f"one_node_{phi}": f"{value:.2f}" for phi, value in one_node.data().values.items()}


def omega_words() -> str:
    """How ω itself changes from no term to the strongest."""
    runs = fractional_depth.data()
    plain, last = fractional_depth.spread(runs, scaled=False).mean, fractional_depth.STRENGTHS[-1]
    ends = {phi: fractional_depth.spread(runs, 2, last, phi, scaled=False).mean for phi in fractional_depth.PHIS}
    said = [
        f"with {fractional_depth.PHIS[phi][0]} it {'rises' if end > plain else 'falls'} from {plain:.1f} (no term) to "
        f"{end:.1f} (μ = {last:g})"
        for phi, end in ends.items()
    ]
    return f"{said[0][0].upper()}{said[0][1:]}; {said[1]}."


def depths(phi: str) -> dict[float, float]:
    """The number of layers that each μ is worth, read between the 2- and the 3-layer GCN on the scale-free spread."""
    runs = fractional_depth.data()
    two, three = (fractional_depth.spread(runs, layers).mean for layers in (2, 3))
    return {
        mu: 2 + (two - fractional_depth.spread(runs, 2, mu, phi).mean) / (two - three)
        for mu in fractional_depth.STRENGTHS
    }


def depth_words() -> str:
    """The same as a sentence."""
    sure, square = depths("cross_entropy"), depths("squared_error")
    low, high = min(sure.values()), max(sure.values())
    start = f"cross entropy lies between 2 and 3 layers: every μ here is worth {low:.1f} to {high:.1f} of them"
    if not 2 < low <= high < 3:
        start = f"cross entropy is worth {low:.1f} to {high:.1f} layers"
    whole = "less than 2 at every μ" if max(square.values()) < 2 else f"{fmean(square.values()):.1f} on average"
    return f"{start}. More μ does not go on deepening it. Squared error is worth {whole}."


def mask_words(results: Results) -> str:
    """What the recorded runs say of it for a GCN."""
    found = figure_data("fig-mask", results).found
    return next((text for text in found if text.startswith("GCN")), "It is not recorded yet.")


def overview_words(results: Results) -> str:
    """The picture on the first page in a sentence."""
    return " ".join(figure_data("overview", results).found)


def fig_depth(results: Results) -> str:
    """Figure 4 with what it says, or that its runs are missing."""
    made = figure_data("fig-depth", results)
    if all(panel.empty for panel in made.panels):
        return f"The same on Cora, the paper's own figure, is not recorded yet ({'; '.join(made.missing)})."
    image = "![Spread of the outputs, accuracy and depth on Cora, from recorded runs.](_made/fig-depth.svg)"
    picture = f":::{{container}} picture\n{image}\n:::"
    said = "\n".join(f"- {line}" for line in made.found)
    return f"The same on Cora, from the recorded runs of the paper's own figure:\n\n{picture}\n\n{said}"


WORDS: dict[str, Callable[[], str]] = {"omega_words": omega_words, "depth_words": depth_words}
FROM_RECORDS: dict[str, Callable[[Results], str]] = {
    "mask_words": mask_words,
    "fig_depth": fig_depth,
    "overview_words": overview_words,
}
