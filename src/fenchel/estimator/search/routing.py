"""scikit-learn's metadata routing: what `fit` of a search hands to its splitter and its scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn import get_config
from sklearn.base import BaseEstimator

from fenchel.data.typing import Vector


@dataclass(frozen=True)
class Routed:
    """Keywords of `split`, and of the scorer (for all samples)."""

    split: dict[str, Any]
    score: dict[str, Any]


class RoutedSearch(BaseEstimator):  # type: ignore[misc]
    """A search with a splitter and perhaps a scorer."""

    cv: Any
    #: The methods of the search that call the scorer.
    _scoring_methods: ClassVar[tuple[str, ...]] = ("fit",)

    def _routed_scorer(self) -> Any:
        """The scorer that takes part in routing; None if there is none."""
        return None

    def get_metadata_routing(self) -> Any:
        """The requests of the splitter and the scorer, for scikit-learn."""
        from sklearn.model_selection import check_cv
        from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        scorer = self._routed_scorer()
        if scorer is not None:
            mapping = MethodMapping()
            for method in self._scoring_methods:
                mapping.add(caller=method, callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router


def asking_for_weights(scorer: Any) -> Any:
    """A scorer that asks for sample weights, if routing is on; else scorers have no requests, and get them anyway."""
    is_on = get_config().get("enable_metadata_routing")
    return scorer.set_score_request(sample_weight=True) if is_on else scorer


def routed(model: RoutedSearch, weights: Vector | None, params: dict[str, Any]) -> Routed:
    """The keywords for splitter and scorer; without routing only sample weights (if given), for the scorer."""
    from sklearn.utils.metadata_routing import process_routing

    known = {} if weights is None else {"sample_weight": weights}
    if not get_config().get("enable_metadata_routing"):
        if params:
            raise _unrouted("fit", params)
        return Routed({}, known)
    found = process_routing(model, "fit", **params, **known)
    return Routed(dict(found.splitter.split), dict(found.scorer.score) if model._routed_scorer() is not None else known)


def routed_score(model: RoutedSearch, params: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `score` for the scorer; without routing only sample weights."""
    from sklearn.utils.metadata_routing import process_routing

    if not get_config().get("enable_metadata_routing"):
        if set(params) - {"sample_weight"}:
            raise _unrouted("score", params)
        return {name: value for name, value in params.items() if value is not None}
    return dict(process_routing(model, "score", **params).scorer.score)


def _unrouted(method: str, params: dict[str, Any]) -> ValueError:
    return ValueError(
        f"Passing {', '.join(sorted(params))} to {method} is only supported if enable_metadata_routing=True, which "
        "sklearn.set_config sets"
    )


def of_samples(keywords: dict[str, Any], X: Any, test: Any) -> dict[str, Any]:
    """The keywords for some of the samples."""
    from sklearn.utils.validation import _check_method_params

    return dict(_check_method_params(X, keywords, indices=test))
