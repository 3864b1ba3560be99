"""Training methods: what is more than a regularized loss, or more than one network. One file each, without torch."""

from propreg.engine.models.architecture import Architecture
from propreg.methods.bvat import O_BVAT, S_BVAT
from propreg.methods.gam import GAM
from propreg.methods.gmnn import GMNN
from propreg.methods.grand import GRAND
from propreg.methods.graphat import GRAPHAT, GRAPHVAT
from propreg.methods.graphmix import GRAPHMIX, GRAPHMIX_CLEAN
from propreg.methods.nasa import NASA

ENTRIES: tuple[Architecture, ...] = (
    GRAND, GMNN, GRAPHAT, GRAPHVAT, O_BVAT, S_BVAT, GRAPHMIX, GRAPHMIX_CLEAN, NASA, GAM,
)  # fmt: skip
"""All of them; :data:`propreg.engine.models.MODELS` takes them in on first use."""
