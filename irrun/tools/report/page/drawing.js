// How the graph looks: frames of open boxes, closed boxes, ports and edges, as elements of SVG.
"use strict";

class Drawing {
  constructor(model, scene, colours) {
    Object.assign(this, {model, scene, colours});
    this.places = new Map(); // where each box is
    this.drawn = new Map(); // the element of each box
    this.marked = new Map(); // what is wrong with each box, which takes long to find of large ones
    this.lists = 0; // containers that are lists, as their layout took too long
  }

  // All elements for a layout, those below first.
  elements(laid) {
    this.lists = 0;
    this.places.clear();
    this.drawn.clear();
    const layers = {frames: [], edges: [], boxes: []};
    this.#draw(laid, 0, 0, layers);
    return [...layers.frames, ...layers.edges, ...layers.boxes];
  }

  #draw(container, x, y, layers) {
    this.lists += container.listed;
    for (const edge of container.edges) layers.edges.push(this.#edge(edge, x, y));
    for (const node of container.nodes) {
      const place = {x: x + node.x, y: y + node.y, width: node.width, height: node.height};
      if (node.box !== undefined) this.places.set(node.box, place);
      if (node.port) layers.boxes.push(this.#port(node, place));
      else if (node.inner) {
        layers.frames.push(this.#frame(node, place));
        this.#draw(node.inner, place.x + (node.width - node.inner.width) / 2, place.y + TITLE_HEIGHT, layers);
      } else layers.boxes.push(this.#box(node, place));
    }
  }

  #edge(edge, x, y) {
    const points = edge.points.map(([a, b]) => [x + a, y + b]);
    const path = svg("path", {d: curve(edge.back ? points.reverse() : points), class: edge.back ? "back" : null});
    const group = svg("g", {class: "edge", "data-from": edge.from, "data-to": edge.to}, path,
      svg("title", {}, [...new Set(edge.tensors)].slice(0, 12).join("\n")));
    if (edge.label && edge.text && Array.isArray(edge.label)) {
      group.append(svg("text", {x: x + edge.label[0], y: y + edge.label[1] + 4}, edge.text));
    }
    return group;
  }

  #port(node, {x, y, width, height}) {
    const text = clippedTo(this.scene, node.text, width - 14);
    return svg("g", {class: `port ${node.port}`, transform: `translate(${x} ${y})`, "data-layer": node.layer},
      svg("rect", {width, height, rx: height / 2}),
      svg("text", {x: width / 2, y: 13}, text),
      svg("title", {}, node.title || (node.layer === null ? node.text : this.model.path(node.layer))));
  }

  #frame(node, {x, y, width, height}) {
    const [head, below] = this.scene.texts(node.box);
    const fill = this.colours.fill(node.box);
    const stripe = svg("rect", {class: "stripe", width, height: 4, rx: 2});
    if (fill) stripe.style.fill = fill;
    const title = this.model.isLayer(node.box) ? `${head}   ${below}` : head;
    const element = svg("g", {class: "frame", transform: `translate(${x} ${y})`, "data-box": node.box},
      svg("rect", {class: "back", width, height, rx: 8}), stripe,
      svg("text", {class: "head", x: 28, y: 18}, clippedTo(this.scene, title, width - 44, true)),
      svg("g", {class: "toggle", role: "button"}, svg("rect", {x: 6, y: 7, width: 16, height: 14, rx: 3}), svg("path", {d: "M10 14 h8"}), svg("title", {}, "close")),
      svg("title", {}, this.#title(node.box)));
    this.drawn.set(node.box, element);
    return element;
  }

  #box(node, {x, y, width, height}) {
    const {model} = this;
    const [head, below] = this.scene.texts(node.box);
    const opens = model.opens(node.box);
    const rect = svg("rect", {class: "back", width, height, rx: 6});
    const fill = this.colours.fill(node.box);
    if (fill) rect.style.fill = fill;
    const value = this.scene.value(node.box);
    const room = width - 20 - (opens ? 16 : 0) - (value ? this.scene.textWidth(value) + 6 : 0);
    const element = svg(
      "g",
      {
        class: `box ${opens ? "group" : "layer"} ${model.isLayer(node.box) && model.layers.quiet[node.box] ? "constant" : ""} ${this.#marks(node.box)}`,
        transform: `translate(${x} ${y})`, "data-box": node.box,
      },
      opens && !model.isLayer(node.box) ? svg("rect", {class: "behind", x: 4, y: 4, width, height, rx: 6}) : null,
      rect,
      opens ? this.#parts(node.box, width, height) : null,
      svg("text", {class: "head", x: opens ? 28 : 12, y: 17}, clippedTo(this.scene, head, room, true)),
      svg("text", {class: "below", x: 12, y: 32}, clippedTo(this.scene, below, width - 20)),
      value ? svg("text", {class: "value", x: width - 8, y: 16}, value) : null,
      opens ? svg("g", {class: "toggle", role: "button"}, svg("rect", {x: 7, y: 6, width: 16, height: 14, rx: 3}), svg("path", {d: "M11 13 h8 M15 9 v8"}), svg("title", {}, "open")) : null,
      svg("title", {}, this.#title(node.box)),
    );
    this.drawn.set(node.box, element);
    return element;
  }

  // What a group is made of, as a strip at its foot.
  #parts(box, width, height) {
    const parts = this.colours.parts(box);
    const total = parts.reduce((sum, [, count]) => sum + count, 0);
    let x = 8;
    return parts.map(([kind, count]) => {
      const wide = ((width - 16) * count) / total;
      const part = svg("rect", {class: "part", x, y: height - 6, width: wide, height: 3});
      part.style.fill = this.colours.hue(kind);
      x += wide;
      return part;
    });
  }

  // Whether a diagnostic is about something in it, and whether that differs from the other side.
  #marks(box) {
    if (!this.marked.has(box)) this.marked.set(box, this.#marksOf(box));
    return this.marked.get(box);
  }

  #marksOf(box) {
    let worst = "";
    for (const layer of this.model.within(box)) {
      const error = this.model.errors?.get(layer);
      if (error && !error.agrees) return "wrong";
      for (const number of this.model.diagnostics.get(layer) || []) {
        const {severity} = this.model.data.diagnostics[number];
        if (severity === "error") return "wrong";
        if (severity === "warning") worst = "doubtful";
      }
    }
    return worst;
  }

  #title(box) {
    const {model} = this;
    const value = this.colours.text(box);
    const said = value ? `\n${this.colours.mode.title}: ${value}` : "";
    if (!model.isLayer(box)) return `${model.label(box)}${said}`;
    const outputs = model.layers.outputs[box].map(([text]) => text).join(", ");
    return `${model.layers.op[box] || model.layers.type[box]}\n${model.path(box)}\n${outputs}${said}`;
  }
}

// A path through points that bends smoothly at the middle of each stretch between them.
function curve(points) {
  const [first, ...rest] = points.map(([x, y]) => [x.toFixed(1), y.toFixed(1)]);
  if (rest.length === 1) return `M${first} L${rest[0]}`;
  let path = `M${first}`;
  for (let place = 0; place < rest.length - 1; place++) {
    const [a, b] = [points[place + 1], points[place + 2]];
    const end = place === rest.length - 2 ? b : [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    path += ` Q${a[0].toFixed(1)},${a[1].toFixed(1)} ${end[0].toFixed(1)},${end[1].toFixed(1)}`;
  }
  return path;
}

// A text without its middle where there is no room for it.
function clippedTo(scene, text, room, bold = false) {
  const width = scene.textWidth(text, bold);
  if (width <= room) return text;
  for (let kept = Math.ceil((text.length * room) / width); kept > 2; kept--) {
    const head = Math.ceil(kept * 0.6);
    const cut = `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
    if (scene.textWidth(cut, bold) <= room) return cut;
  }
  return "…";
}
