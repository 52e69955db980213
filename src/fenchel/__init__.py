"""Linear models that prove how good they are."""

from fenchel.certificate import certify_weights as certify
from fenchel.problem import Problem, losses, penalties, sets
