// Which boxes of the graph are to be seen, and the edges between them, for the containers that are open.
//
// Each container is laid out for itself. What comes from outside stands in it as a port: a pill that names the source.
"use strict";

const MOST_BOXES = 300;
const TITLE_HEIGHT = 26;
const BOX_HEIGHT = 40;
const PORT_HEIGHT = 18;
const MANY_READERS = 6; // boxes that read one tensor: each has a port of its own then, for all such tensors
const MOST_PORTS = 16; // of one side of a container; beyond, one stands for all

class Scene {
  constructor(model, layouts) {
    this.model = model;
    this.layouts = layouts;
    this.root = ROOT;
    this.open = new Set();
    this.constants = false;
    this.font = document.createElement("canvas").getContext("2d");
    this.widths = new Map();
    this.said = new Map();
    this.value = () => ""; // what stands in the corner of a box
    let only = this.inside(ROOT).filter((box) => model.opens(box));
    while (only.length === 1 && this.inside(only[0]).length <= MOST_BOXES / 4 && !model.isLayer(only[0])) {
      this.open.add(only[0]); // a single scope around everything is no choice
      only = this.inside(only[0]).filter((box) => model.opens(box));
    }
  }

  // The boxes in a container; the body of a layer with one body has the place of the layer.
  inside(container) {
    const {model} = this;
    let boxes = model.children.get(container) || [];
    if (model.isLayer(container) && boxes.length === 1) boxes = model.children.get(boxes[0]) || [];
    const computed = boxes.filter((box) => !(model.isLayer(box) && model.layers.quiet[box]));
    return this.constants && boxes.length <= MOST_BOXES ? boxes : computed;
  }

  container(box) {
    const {model} = this;
    const parent = model.parent(box);
    if (parent === null || parent === ROOT || model.isLayer(parent)) return parent;
    const above = model.parent(parent);
    const alone = above !== null && model.isLayer(above) && model.children.get(above).length === 1;
    return alone ? above : parent;
  }

  // A layer with several bodies is open with these.
  isOpen(box) {
    const group = this.model.group(box);
    return this.open.has(box) || Boolean(group && group.kind === "body" && this.open.has(this.model.parent(box)));
  }

  chain(box) {
    const found = [box];
    for (let above = this.container(box); above !== null; above = this.container(above)) {
      found.push(above);
      if (above === this.root) break;
    }
    return found;
  }

  boxes(container = this.root) {
    return this.inside(container).reduce((sum, box) => sum + 1 + (this.isOpen(box) ? this.boxes(box) : 0), 0);
  }

  // Open a box and all around it. What was opened longest ago closes where there are too many boxes, and at last the
  // graph shows nothing but the innermost containers.
  reveal(box, itself = false) {
    if (!this.chain(box).includes(this.root)) this.root = ROOT;
    const kept = new Set([...this.around(box), ...(itself ? [box] : [])]);
    for (const each of [...kept].reverse()) {
      this.open.delete(each);
      this.open.add(each);
    }
    for (const each of [...this.open]) {
      if (this.boxes() <= MOST_BOXES) return;
      if (!kept.has(each)) this.open.delete(each);
    }
    const way = [...this.around(box)].reverse();
    if (itself) way.push(box);
    for (const each of way) {
      if (this.boxes() <= MOST_BOXES) return;
      this.root = each;
    }
  }

  around(box) {
    const found = [];
    for (let above = this.container(box); above !== null && above !== ROOT; above = this.container(above)) found.push(above);
    return found;
  }

  close(box) {
    this.open.delete(box);
  }

  // The visible box that each layer is, or lies in.
  #shown() {
    const shown = new Map();
    const visit = (container) => {
      for (const box of this.inside(container)) {
        if (this.isOpen(box)) {
          if (this.model.isLayer(box)) shown.set(box, box);
          visit(box);
        } else {
          for (const layer of this.model.within(box)) shown.set(layer, box);
        }
      }
    };
    visit(this.root);
    if (!this.constants) for (const layer of shown.keys()) if (this.model.layers.quiet[layer]) shown.delete(layer);
    return shown;
  }

  // By container: edges, and ports of what comes in and goes out.
  #connected() {
    const shown = this.#shown();
    const found = new Map();
    const of = (container) => {
      if (!found.has(container)) found.set(container, {edges: new Map(), ports: new Map()});
      return found.get(container);
    };
    const join = (container, from, to, tensor, source, more = {}) => {
      const key = `${from}>${to}${more.back ? "<" : ""}`;
      const {edges} = of(container);
      if (!edges.has(key)) edges.set(key, {from, to, tensors: [], sources: [], ...more});
      edges.get(key).tensors.push(tensor);
      edges.get(key).sources.push(source);
    };
    const port = (container, side, source, output) => {
      const id = `${side}${source}:${output}`;
      of(container).ports.set(id, {id, side, layer: source});
      return id;
    };
    for (const [layer, box] of shown) {
      for (const [source, output] of this.model.inputs(layer)) {
        if (source < 0 || shown.get(source) === box) continue;
        const tensor = this.model.tensor(source, output);
        const origin = `${source}:${output}`;
        if (!shown.has(source)) {
          if (this.model.layers.quiet[source]) continue;
          for (const [inner, outer] of steps(this.chain(box))) join(outer, port(outer, "in", source, output), inner, tensor, origin);
          continue;
        }
        const to = this.chain(box), from = this.chain(shown.get(source));
        const common = to.slice(1).find((container) => from.indexOf(container) > 0);
        if (common === undefined) continue;
        const below = (chain) => chain[chain.indexOf(common) - 1];
        join(common, below(from), below(to), tensor, origin);
        for (const [inner, outer] of steps(to.slice(0, to.indexOf(common)))) join(outer, port(outer, "in", source, output), inner, tensor, origin);
        for (const [inner, outer] of steps(from.slice(0, from.indexOf(common)))) join(outer, inner, port(outer, "out", source, output), tensor, origin);
      }
    }
    this.#bodies(shown, join, of);
    return found;
  }

  // What bodies get from outside and give there, and from one iteration to the next.
  #bodies(shown, join, of) {
    const {model} = this;
    for (const [number, group] of model.groups.entries()) {
      if (group.kind !== "body") continue;
      const owner = group.parent, box = model.count + number;
      const container = model.children.get(owner).length === 1 ? owner : box;
      if (!shown.has(owner) || shown.get(owner) !== owner || !this.isOpen(container)) continue;
      const port = (side, layer, external) => {
        const id = `${side}${external}`;
        const label = `${side} ${model.portName(owner, side === "in" ? 0 : 1, external)}`;
        of(container).ports.set(id, {id, side, layer, label});
        return id;
      };
      for (const [external, layer] of group.into) {
        const source = external < 0 ? undefined : model.inputs(owner)[external];
        if (source && shown.get(layer) === layer) {
          join(container, port("in", source[0] < 0 ? owner : source[0], external), layer, model.tensor(layer, 0), `${owner}:in${external}`);
        }
      }
      for (const [external, layer] of group.out) {
        if (external >= 0 && shown.get(layer) === layer) join(container, layer, port("out", owner, external), model.tensor(owner, external), `${layer}:0`);
      }
      for (const [result, parameter] of group.back) {
        if (shown.has(result) && shown.has(parameter)) join(container, parameter, result, "next iteration", "", {back: true});
      }
    }
  }

  textWidth(text, bold = false) {
    const key = bold ? `*${text}` : text;
    if (!this.widths.has(key)) {
      this.font.font = bold ? "600 13px system-ui, sans-serif" : "11px system-ui, sans-serif";
      this.widths.set(key, this.font.measureText(text).width);
    }
    return this.widths.get(key);
  }

  // What stands in a box: the type of a layer over its name, the name of a group over what it holds.
  texts(box) {
    if (!this.said.has(box)) this.said.set(box, this.#texts(box));
    return this.said.get(box);
  }

  #texts(box) {
    const {model} = this;
    if (model.isLayer(box)) return [model.layers.type[box], model.shortName(box)];
    const group = model.group(box);
    let count = 0;
    for (const layer of model.within(box)) count += !model.layers.quiet[layer];
    const alike = model.alike.get(group.alike);
    return [group.label, `${many(count, "layer")}${alike > 1 ? `, one of ${alike} alike` : ""}`];
  }

  // The tree of containers with places, the root's first: {box, x, y, width, height, nodes, edges, listed}.
  async laidOut() {
    const connected = this.#connected();
    return this.#container(this.root, connected);
  }

  async #container(container, connected) {
    const {edges, ports} = connected.get(container) || {edges: new Map(), ports: new Map()};
    const nodes = await Promise.all(this.inside(container).map(async (box) => {
      if (this.isOpen(box)) {
        const inner = await this.#container(box, connected);
        const title = this.textWidth(this.model.isLayer(box) ? this.texts(box).join("   ") : this.texts(box)[0], true) + 60;
        return {id: box, box, inner, width: Math.max(inner.width, Math.min(title, 420)), height: inner.height + TITLE_HEIGHT};
      }
      const [head, below] = this.texts(box);
      const value = this.value(box);
      const above = this.textWidth(head, true) + (this.model.opens(box) ? 16 : 0) + (value ? this.textWidth(value) + 8 : 0);
      const width = Math.max(above + 26, this.textWidth(below) + 24, 96);
      return {id: box, box, width: Math.min(width, 230), height: BOX_HEIGHT};
    }));
    const drawn = this.#pooled(this.#shared([...edges.values()], ports), ports);
    for (const {id, side, layer, label, title} of ports.values()) {
      if (!drawn.used.has(id)) continue;
      const text = label || `${side === "in" ? "from" : "out of"} ${layer === null ? "outside" : this.model.shortName(layer)}`;
      nodes.push({id, port: side, layer, text, title, width: Math.min(this.textWidth(text), 150) + 18, height: PORT_HEIGHT});
    }
    const asked = drawn.edges.map((edge) => ({...edge, text: edgeText(edge), weight: edge.back ? 1 : 2}))
      .map((edge) => ({...edge, label: edge.text ? this.textWidth(edge.text) + 8 : 0}));
    if (!nodes.length) return {box: container, nodes, edges: [], width: 120, height: 20, listed: false}; // constants alone
    const layout = await this.layouts.of(nodes, asked);
    nodes.forEach((node, number) => {
      [node.x, node.y] = layout.places[number];
    });
    const ways = layout.ways.map((way, number) => ({...asked[number], ...way}));
    return {box: container, nodes, edges: ways, width: layout.width, height: layout.height, listed: Boolean(layout.listed)};
  }

  // Edges of a tensor that many boxes read would cross everything: each box has a port of its own instead.
  #shared(edges, ports) {
    const readers = new Map();
    for (const {to, back, sources} of edges) {
      for (const source of back ? [] : sources) readers.set(source, new Set(readers.get(source)).add(to));
    }
    const many = (source) => (readers.get(source)?.size || 0) >= MANY_READERS;
    const own = new Map();
    const kept = [];
    for (const edge of edges) {
      const shared = edge.back ? [] : edge.sources.map((source, place) => [source, edge.tensors[place]]).filter(([source]) => many(source));
      if (shared.length) own.set(edge.to, [...(own.get(edge.to) || []), ...shared]);
      const left = edge.tensors.filter((_, place) => edge.back || !many(edge.sources[place]));
      if (left.length) kept.push({...edge, tensors: left});
    }
    for (const [box, shared] of own) {
      const layers = [...new Set(shared.map(([source]) => Number(source.split(":")[0])))];
      const id = `in@${box}`;
      const title = layers.map((layer) => this.model.path(layer)).join("\n");
      const label = layers.length > 1 ? `from ${layers.length} others` : null;
      ports.set(id, {id, side: "in", layer: layers.length > 1 ? null : layers[0], label, title});
      kept.push({from: id, to: box, tensors: shared.map(([, tensor]) => tensor)});
    }
    return kept;
  }

  // Of very many ports on a side one stands for all.
  #pooled(edges, ports) {
    for (const side of ["in", "out"]) {
      const own = [...ports.values()].filter((port) => port.side === side && !port.id.includes("@"));
      if (own.length <= MOST_PORTS) continue;
      const id = `${side}*`;
      for (const port of own) ports.delete(port.id);
      ports.set(id, {id, side, layer: null, label: `${own.length} tensors ${side === "in" ? "from outside" : "to the outside"}`});
      const pooled = new Map();
      for (const edge of edges) {
        const [from, to] = [edge.from, edge.to].map((end) => (own.some((port) => port.id === end) ? id : end));
        const key = `${from}>${to}${edge.back ? "<" : ""}`;
        if (pooled.has(key)) pooled.get(key).tensors.push(...edge.tensors);
        else pooled.set(key, {...edge, from, to});
      }
      edges = [...pooled.values()];
    }
    return {edges, used: new Set(edges.flatMap((edge) => [edge.from, edge.to]))};
  }
}

// Pairs of a box and the container around it, along a chain of boxes.
function* steps(chain) {
  for (let place = 1; place < chain.length; place++) yield [chain[place - 1], chain[place]];
}

const LONGEST_EDGE = 34;

function edgeText(edge) {
  const [first] = edge.tensors;
  const text = first.length > LONGEST_EDGE ? `${first.slice(0, LONGEST_EDGE - 1)}…` : first;
  const others = new Set(edge.tensors).size - 1;
  return others > 0 ? `${text} +${others}` : text;
}
