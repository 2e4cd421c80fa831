"""Running a model: the plan that is made once, and the executor that follows it."""
