"""python -m fenchel."""

from fenchel.cli import main

main()
