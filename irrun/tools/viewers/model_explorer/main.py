"""The adapter that Model Explorer loads, for .xml files: `--extensions=irrun.tools.viewers.model_explorer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_explorer import Adapter, AdapterMetadata
from model_explorer.graph_builder import Graph

from irrun.check.validate import validate
from irrun.tools.viewers.facts import viewed
from irrun.tools.viewers.model_explorer.graphs import graphs


class IRAdapter(Adapter):  # type: ignore[misc] # the package has no types
    """OpenVINO IR as irrun reads it: inferred shapes, costs, and diagnostics at the layers that they are about."""

    metadata = AdapterMetadata(
        id="irrun",
        name="OpenVINO IR (irrun)",
        description="OpenVINO IR with bodies, inferred shapes, costs and diagnostics",
        fileExts=["xml"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, list[Graph]]:
        """The graphs of a model. Raises ValueError, which Model Explorer shows, where the file holds none."""
        return {"graphs": [Graph(**graph) for graph in graphs(viewed(validate(Path(model_path))))]}
