"""Model Explorer: models as graphs in groups, one for each body, and a colour for each cost, time and error.

`model-explorer --extensions=irrun.tools.viewers.model_explorer model.xml` opens a model; it loads `main` here, which
alone needs the package `ai-edge-model-explorer`. What it reads from files is written by `graphs` and `node_data`.
"""
