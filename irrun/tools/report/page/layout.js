// In the worker: the places of the boxes of one container, and the ways of the edges between them.
//
// Asked {id, nodes: [{id, width, height}], edges: [{from, to, label}]}; answers {id, places, ways, width, height}.
"use strict";

const EDGE_LABEL = 13;
const MANY = 120; // edges beyond which labels would take more room than they are worth

self.onmessage = ({data}) => {
  const graph = new dagre.graphlib.Graph({multigraph: true});
  const labelled = data.edges.length <= MANY;
  graph.setGraph({rankdir: "TB", nodesep: 18, ranksep: labelled ? 22 : 34, edgesep: 10, marginx: 14, marginy: 12, ranker: data.ranker});
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of data.nodes) graph.setNode(String(node.id), {width: node.width, height: node.height});
  data.edges.forEach((edge, number) => {
    const label = labelled && edge.label ? {width: edge.label, height: EDGE_LABEL, labelpos: "c"} : {};
    graph.setEdge(String(edge.from), String(edge.to), {...label, weight: edge.weight}, String(number));
  });
  dagre.layout(graph);
  const places = data.nodes.map((node) => {
    const {x, y} = graph.node(String(node.id));
    return [x - node.width / 2, y - node.height / 2];
  });
  const ways = data.edges.map((edge, number) => {
    const {points, x, y} = graph.edge(String(edge.from), String(edge.to), String(number));
    return {points: points.map((point) => [point.x, point.y]), label: x === undefined ? null : [x, y]};
  });
  const {width, height} = graph.graph();
  self.postMessage({id: data.id, places, ways, width, height});
};
