"""Linear systems with the Hessian of P: Gram matrices, conjugate gradients, the augmented and the scaled operator."""
