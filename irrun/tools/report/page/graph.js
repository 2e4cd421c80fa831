// The tab of the graph: boxes that open by a click, their colours, and the keys that lead from one to the next.
"use strict";

const KEYS = "arrows: along edges and beside; Enter: open or close; Escape: what is around; + and −: larger, smaller; 0: all of it";

const READABLE = 0.7; // the least scale that a drawing begins with

class GraphTab {
  constructor(panel, model, selection, layouts) {
    Object.assign(this, {model, selection});
    this.scene = new Scene(model, layouts);
    this.colours = new Colours(model);
    this.view = new View("Graph of the model");
    this.elements = new Map();
    this.places = new Map();
    this.drawing = 0;
    this.fitted = false; // the first drawing that is not overtaken by another one
    this.scene.value = (box) => (this.colours.mode.kind ? "" : this.colours.text(box));
    this.status = el("p", {class: "status", role: "status"});
    this.crumbs = el("nav", {class: "crumbs", "aria-label": "What the graph shows"});
    this.legend = el("div");
    const modes = el("select", {"aria-label": "Colour by", onchange: () => this.#recolour(modes.value)},
      this.colours.modes.map((mode) => el("option", {value: mode.id}, mode.title)));
    this.modes = modes;
    const constants = el("input", {type: "checkbox", onchange: () => this.#toggleConstants(constants.checked)});
    const button = (text, title, action) => el("button", {class: "quiet-button", title, "aria-label": title, onclick: action}, text);
    panel.append(
      el("div", {class: "bar"}, el("label", {}, "colour by ", modes), el("span", {class: "stretch"}),
        el("label", {}, constants, " constants"),
        button("close all", "Close all boxes", () => this.#closeAll()),
        button("−", "Smaller", () => this.view.zoom(0.8)), button("+", "Larger", () => this.view.zoom(1.25)),
        button("fit", "All of it", () => this.view.fit())),
      el("div", {class: "canvas"}, this.crumbs, this.view.element, this.legend, this.status),
    );
    this.view.element.addEventListener("click", (event) => this.#clicked(event));
    this.view.element.addEventListener("dblclick", (event) => this.#toggled(event));
    this.view.element.addEventListener("keydown", (event) => this.#pressed(event));
    this.view.element.setAttribute("aria-description", KEYS);
    this.view.element.append(svg("title", {}, ""));
    selection.listen((box, from) => this.#selected(box, from));
    replaceIn(this.legend, this.colours.legend());
    this.ready = this.#first();
  }

  async #first() {
    if (this.selection.box !== null) this.#uncover(this.selection.box);
    await this.draw();
    if (this.selection.box !== null) this.#show(this.selection.box);
  }

  shown() {
    if (this.selection.box !== null && this.places.size) this.#selected(this.selection.box, "tab");
  }

  async draw() {
    const turn = ++this.drawing;
    const slow = setTimeout(() => this.status.textContent = "laying out…", 150);
    const began = performance.now();
    const laid = await this.scene.laidOut();
    clearTimeout(slow);
    if (turn !== this.drawing) return false;
    this.lists = 0;
    this.elements.clear();
    this.places.clear();
    const layers = {frames: [], edges: [], boxes: []};
    this.#draw(laid, 0, 0, layers);
    this.view.content.replaceChildren(...layers.frames, ...layers.edges, ...layers.boxes);
    this.view.width = laid.width;
    this.view.height = laid.height;
    this.laid = laid;
    this.took = performance.now() - began;
    const lists = this.lists ? "; the layout took more than 3 s, so boxes are listed in the order in which they are computed" : "";
    this.status.textContent = `${many(this.scene.boxes(), "box", "boxes")}${lists}`;
    this.view.element.dataset.took = this.took.toFixed(0);
    this.view.element.dataset.boxes = String(this.scene.boxes());
    if (!this.fitted) this.view.fit(READABLE);
    this.fitted = true;
    this.#drawCrumbs();
    this.#mark();
    return true;
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
      svg("title", {}, node.layer === null ? node.text : this.model.path(node.layer)));
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
    this.elements.set(node.box, element);
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
    this.elements.set(node.box, element);
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

  #drawCrumbs() {
    const way = [this.scene.root, ...this.scene.around(this.scene.root)].filter((box) => box !== ROOT).reverse();
    const link = (box, text) => el("button", {class: "link", onclick: () => this.#enter(box)}, named(text));
    this.crumbs.hidden = way.length === 0;
    replaceIn(this.crumbs, link(ROOT, "the model"), way.map((box) => [" / ", link(box, this.model.label(box))]));
  }

  async #enter(container) {
    this.scene.root = container;
    if (this.scene.boxes() > MOST_BOXES) this.scene.open.clear();
    await this.draw();
    this.view.fit(READABLE);
  }

  // What an event is about: a box, or the layer that a port stands for; whether its toggle was hit.
  #hit(event) {
    const found = event.target.closest("[data-box], [data-layer]");
    if (!found || this.view.element.classList.contains("dragged")) return null;
    const {box, layer} = found.dataset;
    return {box: Number(box ?? layer), toggle: Boolean(event.target.closest(".toggle"))};
  }

  #clicked(event) {
    const hit = this.#hit(event);
    if (!hit) return;
    const opens = this.model.opens(hit.box) && !this.scene.isOpen(hit.box);
    this.selection.set(hit.box, this.places.has(hit.box) ? "graph" : "port");
    if (hit.toggle || (opens && !this.model.isLayer(hit.box))) this.toggle(hit.box);
  }

  #toggled(event) {
    const hit = this.#hit(event);
    if (hit && this.model.isLayer(hit.box) && this.model.opens(hit.box)) this.toggle(hit.box);
  }

  // Open or close a box; its corner stays where it is.
  async toggle(box) {
    const before = this.places.get(box);
    if (this.scene.isOpen(box)) this.scene.close(box);
    else this.scene.reveal(box, true);
    if (!(await this.draw())) return;
    const after = this.places.get(box);
    if (!before || !after) return this.view.fit(READABLE);
    const centre = (place) => place.x + place.width / 2;
    this.view.move((centre(before) - centre(after)) * this.view.scale, (before.y - after.y) * this.view.scale);
    this.#fitIn(after);
  }

  // Keep what was opened in sight.
  #fitIn({x, y, width}) {
    const left = this.view.x + x * this.view.scale, right = left + width * this.view.scale;
    const top = this.view.y + y * this.view.scale;
    const room = this.view.element.clientWidth;
    if (right > room && width * this.view.scale <= room) this.view.move(room - right - 8, 0);
    else if (left < 0) this.view.move(8 - left, 0);
    if (top < 0 || top > this.view.element.clientHeight - 120) this.view.move(0, 30 - top);
  }

  async #closeAll() {
    this.scene.open.clear();
    this.scene.root = ROOT;
    await this.draw();
    this.view.fit(READABLE);
  }

  async #toggleConstants(shown) {
    this.scene.constants = shown;
    await this.draw();
    if (this.selection.box !== null) this.#show(this.selection.box);
  }

  #recolour(id) {
    this.colours.choose(id);
    replaceIn(this.legend, this.colours.legend());
    this.draw();
  }

  // Colour by something, from another tab.
  colourBy(id) {
    this.modes.value = id;
    this.#recolour(id);
  }

  #uncover(box) {
    const {model, scene} = this;
    if (model.isLayer(box) && model.layers.quiet[box] && !scene.constants) {
      const reader = model.readers[box].find(([layer]) => !model.layers.quiet[layer]);
      scene.reveal(reader ? reader[0] : box);
      return;
    }
    scene.reveal(box);
  }

  async #selected(box, from) {
    if (box !== null && from !== "graph" && this.view.element.clientWidth) {
      const before = [this.scene.root, ...this.scene.open].join();
      this.#uncover(box);
      if ([this.scene.root, ...this.scene.open].join() !== before) await this.draw();
      this.#show(box);
    }
    this.#mark();
  }

  #show(box) {
    const place = this.places.get(box);
    if (place) this.view.show(place.x, place.y, place.width, place.height);
  }

  #mark() {
    const chosen = this.selection.box;
    for (const lit of this.view.content.querySelectorAll(".selected, .lit")) lit.classList.remove("selected", "lit");
    if (chosen === null) return;
    this.elements.get(chosen)?.classList.add("selected");
    for (const edge of this.view.content.querySelectorAll(".edge")) {
      const {from, to} = edge.dataset;
      if (from === String(chosen) || to === String(chosen)) edge.classList.add("lit");
    }
  }

  #pressed(event) {
    const {key} = event;
    const chosen = this.places.has(this.selection.box) ? this.selection.box : null;
    const act = {
      "+": () => this.view.zoom(1.25), "=": () => this.view.zoom(1.25), "-": () => this.view.zoom(0.8), "0": () => this.view.fit(),
      ArrowDown: () => this.#step(chosen, 1), ArrowUp: () => this.#step(chosen, -1),
      ArrowRight: () => this.#beside(chosen, 1), ArrowLeft: () => this.#beside(chosen, -1),
      Enter: () => chosen !== null && this.model.opens(chosen) && this.toggle(chosen),
      " ": () => chosen !== null && this.model.opens(chosen) && this.toggle(chosen),
      Escape: () => this.#outward(chosen),
    }[key];
    if (!act || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  }

  #go(box) {
    this.selection.set(box, "graph");
    this.#show(box);
  }

  // Along an edge: the first box that reads what is selected, or that it reads. Into an open box its first one.
  #step(box, way) {
    if (box === null) return this.#go(this.scene.inside(this.scene.root)[0]);
    if (way > 0 && this.scene.isOpen(box)) {
      const [first] = this.scene.inside(box);
      if (first !== undefined) return this.#go(first);
    }
    const [own, other] = way > 0 ? ["from", "to"] : ["to", "from"];
    const edges = [...this.view.content.querySelectorAll(".edge")].filter((edge) => edge.dataset[own] === String(box) && !edge.querySelector(".back"));
    const next = edges.map((edge) => Number(edge.dataset[other])).filter((found) => this.places.has(found));
    if (next.length) this.#go(next[0]);
    else if (way < 0 && this.scene.container(box) !== this.scene.root) this.#outward(box);
    return undefined;
  }

  // The nearest box to a side at about the same height.
  #beside(box, way) {
    if (box === null) return this.#step(null, 1);
    const here = this.places.get(box);
    const middle = (place) => [place.x + place.width / 2, place.y + place.height / 2];
    const [x, y] = middle(here);
    let best = null, least = Infinity;
    for (const other of this.scene.inside(this.scene.container(box) ?? ROOT)) {
      const place = this.places.get(other);
      if (other === box || !place) continue;
      const [a, b] = middle(place);
      const distance = Math.abs(a - x) + 4 * Math.abs(b - y);
      if ((a - x) * way > 0 && distance < least) [best, least] = [other, distance];
    }
    if (best !== null) this.#go(best);
    return undefined;
  }

  #outward(box) {
    if (box === null) return;
    const around = this.scene.container(box);
    if (around !== null && around !== this.scene.root) this.#go(around);
    else if (this.scene.isOpen(box)) this.toggle(box);
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
