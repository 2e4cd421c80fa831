"""A corpus of broken models, generated from valid ones, each with the lines at which its defect may be reported."""
