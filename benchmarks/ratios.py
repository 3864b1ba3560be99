"""How a ratio is written. On its own, so that pages are made from records without torch."""


def times(ratio: float) -> str:
    """A ratio in three digits: 1.06×, 48.8×, 1,070×."""
    return f"{float(f'{ratio:.3g}'):,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"
