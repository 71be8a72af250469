"""The rule and the step as Triton kernels."""
