// Layouts of containers, asked of the worker and remembered; where it takes too long, a list of rows instead.
"use strict";

const PATIENCE = 3000; // milliseconds
const LIST_COLUMN = 12;
const NETWORK = 60; // nodes up to which the better ranking is quick

class Layouts {
  constructor(source) {
    this.source = source;
    this.worker = null;
    this.known = new Map();
    this.waiting = new Map();
    this.asked = 0;
    this.late = new Set();
  }

  #start() {
    const address = URL.createObjectURL(new Blob([this.source], {type: "text/javascript"}));
    this.worker = new Worker(trusted(address));
    URL.revokeObjectURL(address);
    this.worker.onmessage = ({data}) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (waiting) waiting(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.cancel();
    };
  }

  // Give up on all that is being laid out.
  cancel() {
    if (this.worker) this.worker.terminate();
    this.worker = null;
    for (const waiting of this.waiting.values()) waiting(null);
    this.waiting.clear();
  }

  // {places, ways, width, height}; `listed` where it is a list without edges.
  async of(nodes, edges) {
    const key = JSON.stringify([nodes.map((node) => [node.id, node.width, node.height]), edges.map((edge) => [edge.from, edge.to, edge.label])]);
    if (!this.known.has(key)) {
      const found = await this.#ask(nodes, edges);
      this.known.set(key, found || listed(nodes));
    }
    return this.known.get(key);
  }

  #ask(nodes, edges) {
    if (!this.worker) this.#start();
    const id = ++this.asked;
    return new Promise((resolve) => {
      const clock = setTimeout(() => this.cancel(), PATIENCE);
      this.waiting.set(id, (answer) => {
        clearTimeout(clock);
        resolve(answer);
      });
      this.worker.postMessage({
        id,
        ranker: nodes.length > NETWORK ? "tight-tree" : "network-simplex",
        nodes: nodes.map(({id, width, height}) => ({id, width, height})),
        edges: edges.map(({from, to, label, weight}) => ({from, to, label, weight})),
      });
    });
  }
}

// Boxes in columns, in the order in which they are computed.
function listed(nodes) {
  const gap = 8, margin = 14;
  const rows = Math.max(LIST_COLUMN, Math.ceil(Math.sqrt(nodes.length) * 2));
  const places = [];
  let x = margin, y = margin, widest = 0, bottom = 0;
  nodes.forEach((node, number) => {
    if (number && number % rows === 0) {
      x += widest + 2 * gap;
      y = margin;
      widest = 0;
    }
    places.push([x, y]);
    y += node.height + gap;
    widest = Math.max(widest, node.width);
    bottom = Math.max(bottom, y);
  });
  return {places, ways: [], width: x + widest + margin, height: bottom + margin, listed: true};
}

let policy = null;

// The address of a script of this page, as browsers with Trusted Types want it.
function trusted(address) {
  if (!window.trustedTypes) return address;
  policy ??= trustedTypes.createPolicy("irrun", {
    createScriptURL(text) {
      if (!text.startsWith("blob:")) throw new TypeError("only what is in this page");
      return text;
    },
  });
  return policy.createScriptURL(address);
}
