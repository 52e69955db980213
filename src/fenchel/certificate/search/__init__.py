"""Where better dual points come from."""
