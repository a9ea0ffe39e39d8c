"""The dependence of every value of a step on the samples of its batch: a proof, op by op, that the
slices of a step train what the whole batch trains, and the ops at which it fails."""
