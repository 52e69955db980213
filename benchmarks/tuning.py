"""What a tuning constant is worth: the rows of the benchmarks with other values of it, in turns, as ratios.

\b
    python -m benchmarks.tuning steps.first_order.fista momentum_kept --rows fista         which rows read it
    python -m benchmarks.tuning steps.first_order.fista momentum_kept 0 1 --rows fista     and their times with 0 and 1
    python -m benchmarks.tuning all                                                 every constant of fenchel
    python -m benchmarks.tuning all steps.first_order --write docs/performance/tuning.md

MODULE is one of fenchel with a `TUNING`, FIELD a field of it. Rows are those of benchmarks.regression_jobs and of
benchmarks.tuning_rows whose name has the regular expression --rows and which read the field; others are left out. In
every round each row is run with the present value and with every other one; the ratios are medians over rounds of
processor time to that with the present value, and their geometric means stand below. One thread. A `*` marks a
run that warned or raised, as one that does not reach its tolerance, or that took more than twenty times as long; for
rows whose result is a certificate, the gap beside that of the present value follows the ratio.

`all` does so for every constant whose name (MODULE.FIELD) the regular expression FIELD matches from its beginning, with
the values that benchmarks/tuning_table.py states, on the rows where they make most difference, and prints a table;
--write puts its rows into that of a page.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tuning_runs import compare, reads, rows_of
from benchmarks.tuning_table import constants, line, survey, write


@click.command(help=__doc__)
@click.argument("module")
@click.argument("field", default="")
@click.argument("values", nargs=-1)
@click.option("--rows", "pattern", default="", help="A regular expression: rows whose name has it.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Of the race's sets.")
@click.option("--write", "page", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A page's table.")
def main(
    module: str,
    field: str,
    values: tuple[str, ...],
    pattern: str,
    rounds: int,
    data_dir: Path | None,
    page: Path | None,
) -> None:
    with threadpool_limits(1):
        if module != "all":
            _one(module, field, values, pattern, rounds, data_dir)
            return
        every = constants()
        lines = {}
        for found in survey([one for one in every if re.match(field, one.name)], pattern, data_dir, rounds):
            lines[found.constant.name] = line(found)
            print(lines[found.constant.name], flush=True)
    if page is not None:
        write(page, every, lines)


def _one(module: str, field: str, values: tuple[str, ...], pattern: str, rounds: int, data_dir: Path | None) -> None:
    tuning = import_module(f"fenchel.{module}").TUNING
    if field not in vars(tuning):
        raise click.UsageError(f"{module} has no {field}; its fields are {', '.join(vars(tuning))}")
    others = [ast.literal_eval(value) for value in values]
    every = []
    print(f"{field} = {getattr(tuning, field)}".ljust(66), "ms".rjust(9), *(f"{value:>16}" for value in values))
    for name, make in rows_of(pattern, data_dir):
        run = make()
        if (module, field) not in reads({module: tuning}, run)[1]:
            continue
        found = compare(tuning, field, others, run, rounds if others else 1)
        every.append(found.ratios)
        print(f"{name:<66} {1e3 * found.seconds:9.2f}", *(f"{one:>16}" for one in found.told()), flush=True)
    if not every:
        raise click.ClickException(f"no row with {pattern!r} reads {field}")
    means = np.exp(np.mean(np.log(every), axis=0))
    print(f"{f'geometric mean of {len(every)}':<66} {'':>9}", *(f"{mean:16.3f}" for mean in means))


if __name__ == "__main__":
    main()
