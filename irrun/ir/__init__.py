"""The file format of OpenVINO IR, both ways: XML, graph, weights."""
