"""Hard constraints on the scores: dual ascent (Dykstra), mirror descent and perceptrons."""
