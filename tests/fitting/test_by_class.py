"""The confusion matrix and the report of each class: those of scikit-learn."""

from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from fitting.own_modules import GRAPH, QUICK, SPLIT
from propreg.fitting.fit import fit


@pytest.fixture(scope="module")
def result() -> Any:
    return fit(GRAPH, **QUICK)


@pytest.mark.parametrize("chosen", [False, True])
def test_scikit_learn_agrees(result: Any, chosen: bool) -> None:
    mu = result.mu if chosen else 0.0
    said = np.concatenate([run[SPLIT.test] for run in result.predicted[mu][0]])
    true = np.concatenate([GRAPH.y[SPLIT.test]] * 2)
    np.testing.assert_array_equal(result.confusion(mu), metrics.confusion_matrix(true, said))
    rows = {line.split()[0]: line.split()[1:] for line in result.classification_report(mu).splitlines()[1:]}
    theirs = metrics.classification_report(true, said, output_dict=True)
    for name, key in (("0", "0"), ("1", "1"), ("2", "2"), ("mean", "macro avg")):
        expected = [theirs[key][kind] for kind in ("precision", "recall", "f1-score", "support")]
        assert list(map(float, rows[name])) == pytest.approx(expected, abs=1e-4)
    assert float(rows["accuracy"][0]) == pytest.approx(theirs["accuracy"], abs=1e-4)


def test_strengths_without_predictions_are_named(result: Any) -> None:
    with pytest.raises(ValueError, match=r"no predictions of classes at mu = 0\.7: predictions are kept at 0"):
        result.confusion(0.7)


def test_a_notebook_shows_the_summary(result: Any) -> None:
    assert result._repr_html_().startswith("<pre>")
    assert "plain" in result._repr_html_()
    assert "<" not in result._repr_html_().removeprefix("<pre>").removesuffix("</pre>")
