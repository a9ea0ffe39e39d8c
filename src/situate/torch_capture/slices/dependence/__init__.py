"""The dependence of every value of a step on the samples of its batch: a proof, op by op, that the
slices train the same as the whole batch, and the ops at which it fails."""
