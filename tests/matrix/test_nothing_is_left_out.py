"""Every estimator, every loss and every penalty is in a row of the matrix."""

from fenchel import estimator, losses, penalties
from tests.matrix import test_denoising, test_estimators, test_huber, test_interpolation, test_kernel
from tests.matrix.statements import LOSSES, MULTICLASS, PENALTIES, STATEMENTS


def test_every_estimator_is_in_a_row():
    rows = set(test_estimators.MODELS) | set(test_huber.MODELS) | set(test_interpolation.MODELS)
    rows |= test_denoising.ENTRY_POINTS | set(test_kernel.MODELS)
    assert rows == set(estimator.__all__) - {"GapMonitor"}  # a callback


def test_every_classifier_meets_three_classes():
    assert {name.partition("-")[0] for name in test_estimators.THREE_CLASSES} == test_estimators.CLASSIFIERS


def concrete(module, base):
    kinds = (getattr(module, name) for name in module.__all__)
    return {kind for kind in kinds if issubclass(kind, base) and not kind.__abstractmethods__}


def test_every_loss_and_every_penalty_is_in_a_statement():
    statements = STATEMENTS + MULTICLASS
    kinds = concrete(losses, losses.Loss) | concrete(losses, losses.MulticlassLoss)
    assert kinds == {type(statement.loss) for statement in statements} == set(LOSSES)
    assert concrete(penalties, penalties.Penalty) == {statement.kind for statement in statements} == set(PENALTIES)
