// The search field: by name, type, tensor, line, id and diagnostic code, as a list to choose from.
"use strict";

const MOST_FOUND = 60;

class Search {
  constructor(model, choose) {
    Object.assign(this, {model, choose, found: [], active: -1, texts: null});
    this.input = el("input", {
      type: "search", role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
      "aria-label": "Search layers", placeholder: "search: name, type, tensor, line 41, E304", autocomplete: "off", spellcheck: "false",
      oninput: () => this.#look(), onkeydown: (event) => this.#pressed(event), onfocus: () => this.#look(),
    });
    this.list = el("ul", {id: "found", role: "listbox", "aria-label": "Found", hidden: true});
    this.element = el("div", {}, this.input, this.list);
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget)) this.#close();
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        this.input.focus();
      }
    });
  }

  // What each layer goes by, in small letters: its path, type and op, and the names of its tensors.
  #index() {
    const {layers} = this.model;
    this.texts ??= layers.name.map((name, layer) => [
      this.model.path(layer).toLowerCase(),
      `${layers.type[layer]} ${layers.op[layer] || ""}`.toLowerCase(),
      layers.outputs[layer].flatMap(([, ...names]) => names).join("\n").toLowerCase(),
    ]);
    return this.texts;
  }

  // Pairs of a box and why it is found, the closest first.
  results(query) {
    const {model} = this;
    const text = query.trim().toLowerCase();
    if (!text) return [];
    const found = [];
    const line = /^(?:line|l|:)?\s*(\d+)$/.exec(text);
    if (line) {
      const number = Number(line[1]);
      model.layers.line.forEach((at, layer) => at === number && found.push([layer, `line ${number}`]));
      if (!found.length) { // within the text of a layer, which begins before
        let best = -1;
        model.layers.line.forEach((at, layer) => {
          if (at !== null && at < number && (best < 0 || at > model.layers.line[best])) best = layer;
        });
        if (best >= 0) found.push([best, `line ${model.layers.line[best]}, the last one before line ${number}`]);
      }
      model.layers.id.forEach((id, layer) => id === number && found.push([layer, `id ${id}`]));
    }
    if (/^[a-z]\d{0,3}$/.test(text)) {
      for (const diagnostic of model.data.diagnostics) {
        if (!diagnostic.code.toLowerCase().startsWith(text)) continue;
        for (const layer of diagnostic.layers) found.push([layer, `${diagnostic.code}: ${diagnostic.message}`]);
      }
    }
    const words = text.split(/\s+/);
    const ranked = [[], [], [], []];
    this.#index().forEach(([path, type, tensors], layer) => {
      if (path === text || path.endsWith(`/${text}`)) ranked[0].push([layer, "name"]);
      else if (words.every((word) => path.includes(word))) ranked[1].push([layer, "name"]);
      else if (words.every((word) => `${type} ${path}`.includes(word))) ranked[2].push([layer, "type"]);
      else if (words.every((word) => tensors.includes(word))) ranked[3].push([layer, `tensor ${this.#tensor(layer, words)}`]);
    });
    model.groups.forEach((group, number) => {
      if (group.label.toLowerCase().includes(text)) ranked[1].unshift([model.count + number, group.kind]);
    });
    const quiet = ([box]) => (model.isLayer(box) ? model.layers.quiet[box] : 0); // constants last
    return [...found, ...ranked.flatMap((each) => each.sort((a, b) => quiet(a) - quiet(b)))];
  }

  #tensor(layer, words) {
    const names = this.model.layers.outputs[layer].flatMap(([, ...names]) => names);
    return names.find((name) => words.every((word) => name.toLowerCase().includes(word))) || "";
  }

  #look() {
    const all = this.results(this.input.value);
    this.found = all.slice(0, MOST_FOUND);
    this.active = this.found.length ? 0 : -1;
    const rest = all.length - this.found.length;
    this.list.replaceChildren(...this.found.map(([box, why], place) => this.#option(box, why, place)));
    if (rest > 0) this.list.append(el("li", {class: "hint", role: "presentation"}, `and ${whole(rest)} more`));
    if (!all.length && this.input.value.trim()) this.list.append(el("li", {class: "hint", role: "presentation"}, "nothing of that"));
    this.list.hidden = !this.input.value.trim();
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#mark();
  }

  #option(box, why, place) {
    const {model} = this;
    const type = model.isLayer(box) ? model.layers.type[box] : model.group(box).kind;
    return el(
      "li",
      {role: "option", id: `found-${place}`, "data-box": box, onmousedown: (event) => { event.preventDefault(); this.#take(place); }},
      el("b", {}, named(type)), " ", named(model.isLayer(box) ? model.path(box) : model.label(box)), " ", el("small", {}, named(why)),
    );
  }

  #mark() {
    [...this.list.children].forEach((option, place) => {
      if (option.getAttribute("role") !== "option") return;
      option.setAttribute("aria-selected", String(place === this.active));
      if (place === this.active) option.scrollIntoView({block: "nearest"});
    });
    if (this.active < 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `found-${this.active}`);
  }

  #take(place) {
    const found = this.found[place];
    if (!found) return;
    this.#close();
    this.choose(found[0]);
  }

  #close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  #pressed(event) {
    if (event.key === "Enter") this.#take(this.active);
    else if (event.key === "Escape") this.#close();
    else if (["ArrowDown", "ArrowUp"].includes(event.key) && this.found.length) {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.active = (this.active + step + this.found.length) % this.found.length;
      this.#mark();
    } else return;
    event.preventDefault();
  }
}
