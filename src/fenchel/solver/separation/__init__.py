"""Whether samples can be separated, and what a loss without a penalty has in that case."""
