"""What computes quickly: engines that take over steps of a plan from the ops' own kernels, which stay the reference."""
