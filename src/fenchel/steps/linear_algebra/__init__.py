"""Systems with the Hessian of a loss: Gram matrices, curvature, augmented and scaled operators."""
