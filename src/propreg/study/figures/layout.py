"""Where panels stand on a sheet, in inches: fixed by hand, so that nothing moves when a label is longer."""

from dataclasses import dataclass

from propreg.study.figures.parts import Figure

Box = tuple[float, float, float, float]
"""Left, bottom, width and height as fractions of the sheet."""


@dataclass(frozen=True)
class Frame:
    """The size of a panel's axes, the room left of the first and right of the last, and that between two."""

    width: float
    height: float
    left: float = 0.55
    right: float = 0.15
    across: float = 0.42
    down: float = 0.62
    bottom: float = 0.45


FRAMES = {
    "fig-training-nodes": Frame(2.9, 2.1),
    "fig-mask": Frame(1.8, 1.45),
    "fig-strength": Frame(2.75, 1.95, right=1.45, across=1.3, down=0.74),
    "fig-depth": Frame(2.0, 1.6, right=0.6, across=1.12, down=0.75),
    "fig-tsne": Frame(2.6, 2.6, left=0.12, across=0.2, down=0.58, bottom=0.34),
    "table1": Frame(2.3, 4.7, left=0.8, across=0.22),
    "overview": Frame(4.1, 1.75, left=0.8, right=0.1),
    "accuracy-against-mu": Frame(3.9, 2.4, right=1.1),
    "paired-differences": Frame(3.9, 2.6, left=1.2),
    "training": Frame(2.4, 1.9, across=0.6),
}
SMALL_MULTIPLES = Frame(1.5, 1.1, left=0.6, right=0.5, across=0.54, down=0.3)
HEAD, LEGEND_ROW, TITLE, FOOT_ROW, EDGE = 0.3, 0.19, 0.26, 0.125, 0.08
NAMES = 1.2  # room for the names of rows, where they do not stand at the sheet's edge


@dataclass(frozen=True)
class Layout:
    """The sheet and the box of each panel."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    legend_top: float

    def down(self, inches: float) -> float:
        """A distance from the top, as a height for Matplotlib."""
        return 1 - inches / self.height


def frame_of(figure: Figure) -> Frame:
    """That of a figure, or of small multiples where many panels stand side by side."""
    return SMALL_MULTIPLES if figure.columns > 4 else FRAMES.get(figure.name, Frame(2.9, 2.1))


def sheet_width(figure: Figure) -> float:
    """Inches."""
    frame, columns = frame_of(figure), max(1, figure.columns)
    return frame.left + columns * frame.width + (columns - 1) * frame.across + frame.right


def lay_out(figure: Figure, legend_rows: int, foot_rows: int) -> Layout:
    """Place heading, legend, panels and foot from top to bottom."""
    frame, columns = frame_of(figure), max(1, figure.columns)
    rows = -(-len(figure.panels) // columns)
    top = EDGE + HEAD + legend_rows * LEGEND_ROW + (TITLE if any(panel.title for panel in figure.panels) else 0.06)
    panels = rows * frame.height + (rows - 1) * frame.down
    height = top + panels + frame.bottom + foot_rows * FOOT_ROW + EDGE
    width = sheet_width(figure)
    boxes = []
    for i, panel in enumerate(figure.panels):
        row, column = divmod(i, columns)
        left = frame.left + column * (frame.width + frame.across)
        above = top + row * (frame.height + frame.down)
        shared = columns == 1 or all(other.y_names == panel.y_names for other in figure.panels)
        inset = NAMES if panel.y_names and not shared else 0.0
        box = (left + inset, height - above - frame.height, frame.width - inset, frame.height)
        boxes.append((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    return Layout(width, height, tuple(boxes), EDGE + HEAD)
