// The tab of the graph: what a click and a key do, and what follows the selection. How boxes look is in drawing.js.
"use strict";

const KEYS = "arrows: along edges and beside; Enter: open or close; Escape: what is around; + and −: larger, smaller; 0: all of it";

const READABLE = 0.7; // the least scale that a drawing begins with

class GraphTab {
  constructor(panel, model, selection, layouts) {
    Object.assign(this, {model, selection});
    this.scene = new Scene(model, layouts);
    this.colours = new Colours(model);
    this.view = new View("Graph of the model");
    this.drawing = new Drawing(model, this.scene, this.colours);
    this.places = this.drawing.places;
    this.turn = 0;
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
    const turn = ++this.turn;
    const slow = setTimeout(() => this.status.textContent = "laying out…", 150);
    const began = performance.now();
    const laid = await this.scene.laidOut();
    clearTimeout(slow);
    if (turn !== this.turn) return false;
    this.view.content.replaceChildren(...this.drawing.elements(laid));
    this.places = this.drawing.places;
    this.view.width = laid.width;
    this.view.height = laid.height;
    const lists = this.drawing.lists ? "; the layout took more than 3 s, so boxes are listed in the order in which they are computed" : "";
    this.status.textContent = `${many(this.scene.boxes(), "box", "boxes")}${lists}`;
    this.view.element.dataset.took = (performance.now() - began).toFixed(0);
    this.view.element.dataset.boxes = String(this.scene.boxes());
    if (!this.fitted) this.view.fit(READABLE);
    this.fitted = true;
    this.#drawCrumbs();
    this.#mark();
    return true;
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
    this.#fitIn(after, box);
  }

  // Bring what was opened into sight, by its first box where it is too wide.
  #fitIn({x, y, width}, box) {
    const left = this.view.x + x * this.view.scale, right = left + width * this.view.scale;
    const top = this.view.y + y * this.view.scale;
    const room = this.view.element.clientWidth, height = this.view.element.clientHeight;
    const first = this.places.get(this.scene.isOpen(box) ? this.scene.inside(box)[0] : box);
    if (right > room && width * this.view.scale <= room) this.view.move(room - right - 8, 0);
    else if (first && width * this.view.scale > room) this.view.move(room / 2 - this.view.x - (first.x + first.width / 2) * this.view.scale, 0);
    else if (left < 0) this.view.move(8 - left, 0);
    if (top < 0 || top > height / 2) this.view.move(0, 60 - top);
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
    const said = chosen === null ? "" : `, at ${this.scene.texts(chosen).join(" ")}`;
    this.view.element.setAttribute("aria-label", `Graph of the model${said}`); // what a screen reader says of a key
    for (const lit of this.view.content.querySelectorAll(".selected, .lit")) lit.classList.remove("selected", "lit");
    if (chosen === null) return;
    this.drawing.drawn.get(chosen)?.classList.add("selected");
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
