// The panel beside all tabs: everything that is known of what is selected.
"use strict";

const MOST_LISTED = 12;

class Details {
  constructor(model, selection, show) {
    Object.assign(this, {model, selection, show});
    this.element = el("aside", {class: "details", "aria-label": "What is selected", hidden: true});
    selection.listen((box) => this.draw(box));
  }

  draw(box) {
    this.element.hidden = box === null;
    if (box === null) return;
    replaceIn(this.element, this.#head(box), this.model.isLayer(box) ? this.#ofLayer(box) : this.#ofGroup(box));
    this.element.scrollTop = 0;
  }

  #head(box) {
    const {model} = this;
    const title = model.isLayer(box) ? model.layers.type[box] : model.label(box);
    const copied = el("span", {class: "hint", role: "status"});
    const copy = async () => {
      const address = location.href.split("#")[0] + this.selection.address(box, "graph");
      try {
        await navigator.clipboard.writeText(address);
        copied.textContent = "copied";
      } catch {
        copied.textContent = "it is in the address bar";
      }
    };
    return el("header", {},
      el("h2", {}, named(title)),
      el("button", {class: "close", "aria-label": "Close", onclick: () => this.selection.set(null)}, "×"),
      el("p", {class: "actions"},
        el("button", {class: "link", onclick: () => this.show("graph", box)}, "in the graph"),
        model.isLayer(box) && el("button", {class: "link", onclick: () => this.show("layers", box)}, "in the table"),
        el("button", {class: "link", onclick: copy}, "copy link"), copied));
  }

  // A link to a layer.
  link(layer, text = this.model.layers.name[layer]) {
    return el("button", {class: "link name", "data-link": layer, onclick: () => this.selection.set(layer, "details")}, named(text));
  }

  #facts(rows) {
    return el("dl", {}, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
      [el("dt", {}, name), el("dd", {}, typeof value === "string" ? named(value) : value)]));
  }

  #ofLayer(layer) {
    const {model} = this;
    const {layers} = model;
    const owner = model.ancestors(layer).find((box) => model.isLayer(box));
    return [
      el("p", {class: "full"}, named(layers.name[layer])),
      this.#facts([
        ["op", layers.op[layer] || `${layers.type[layer]}, which could not be inferred`],
        ["id", String(layers.id[layer])],
        ["line", layers.line[layer] ? String(layers.line[layer]) : ""],
        ["in the body of", owner === undefined ? null : this.link(owner)],
        ["MACs", model.cost(layer, "macs") === "0" ? "" : model.cost(layer, "macs")],
        ["bytes moved", model.cost(layer, "bytes") === "0" ? "" : model.cost(layer, "bytes")],
        ["time", model.times?.has(layer) ? micros(model.times.get(layer)) : ""],
        ["precise", layers.precise.includes(layer) ? "kept from 16 bits by its runtime info" : ""],
      ]),
      this.#diagnostics([layer]),
      this.#inputs(layer),
      this.#outputs(layer),
      this.#attributes(layer),
      this.#error(layer),
    ];
  }

  // Those about some layers; with `brief` notes are only counted.
  #diagnostics(layers, brief = false) {
    const all = [...new Set(layers.flatMap((layer) => this.model.diagnostics.get(layer) || []))].sort((a, b) => a - b);
    const numbers = brief ? all.filter((number) => this.model.data.diagnostics[number].severity !== "info") : all;
    if (!all.length) return null;
    const notes = all.length - numbers.length;
    return el("section", {}, el("h3", {}, "Diagnostics"), numbers.slice(0, MOST_LISTED).map((number) => {
      const found = this.model.data.diagnostics[number];
      return el("p", {class: `told ${found.severity}`}, el("b", {class: "code"}, found.code), " ", named(found.message));
    }),
    numbers.length > MOST_LISTED && el("p", {class: "hint"}, `and ${whole(numbers.length - MOST_LISTED)} more`),
    notes > 0 && el("p", {class: "hint"}, many(notes, "note")));
  }

  #inputs(layer) {
    const inputs = this.model.inputs(layer);
    if (!inputs.length) return null;
    return el("section", {}, el("h3", {}, "Inputs"), el("ol", {class: "ports", start: "0"}, inputs.map(([source, output], number) => el(
      "li", {},
      el("span", {class: "port-name"}, this.model.portName(layer, 0, number)), " ",
      source < 0 ? "nothing" : [el("code", {}, this.model.tensor(source, output)), el("br"), this.link(source)],
    ))));
  }

  #outputs(layer) {
    const outputs = this.model.layers.outputs[layer];
    if (!outputs.length) return null;
    const readers = this.model.readers[layer];
    return el("section", {}, el("h3", {}, "Outputs"), el("ol", {class: "ports", start: "0"}, outputs.map(([text, ...names], number) => {
      const own = readers.filter(([, , output]) => output === number);
      return el(
        "li", {},
        el("span", {class: "port-name"}, this.model.portName(layer, 1, number)), " ", el("code", {}, text),
        names.length ? el("div", {class: "hint"}, "tensor ", names.map((name, place) => [place ? ", " : "", named(name)])) : null,
        own.slice(0, MOST_LISTED).map(([reader]) => el("div", {}, "to ", this.link(reader))),
        own.length > MOST_LISTED && el("div", {class: "hint"}, `and ${whole(own.length - MOST_LISTED)} more`),
      );
    })));
  }

  #attributes(layer) {
    const entries = Object.entries(this.model.layers.attributes[layer]);
    return entries.length ? el("section", {}, el("h3", {}, "Attributes"), this.#facts(entries)) : null;
  }

  #error(layer) {
    const tensor = this.model.errors?.get(layer);
    if (!tensor) return null;
    const rows = (measured) => [
      ["largest", `${scientific(measured.max_abs)}${measured.worst ? ` at [${measured.worst.join(", ")}]` : ""}`],
      ["values there", measured.worst_values ? `${scientificText(measured.worst_values[0])}, expected ${scientificText(measured.worst_values[1])}` : ""],
      ["of the rms", scientific(relative(measured))],
      ["noise", decibels(measured.sqnr)],
      ["not finite on one side", measured.nonfinite_differing ? many(measured.nonfinite_differing, "value") : ""],
      ["beyond tolerance", `${whole(measured.mismatches)} of ${whole(measured.count)}`],
    ];
    return el("section", {}, el("h3", {}, "Error beside ", named(this.model.data.comparison.other)),
      this.#facts([["verdict", tensor.agrees ? "within its tolerance" : `off${tensor.cause ? `: ${tensor.cause}` : ""}`],
        ["computed in", [tensor.precision, tensor.primitive].filter(Boolean).join(", ")], ["together with", tensor.fused.join(", ")]]),
      el("h4", {}, "own"), this.#facts([...rows(tensor.own), ["it may be", tensor.own.tolerance]]),
      tensor.accumulated && [el("h4", {}, "accumulated"), this.#facts(rows(tensor.accumulated))]);
  }

  #ofGroup(box) {
    const {model} = this;
    const {layers} = model;
    const inner = [...model.within(box)].filter((layer) => !layers.quiet[layer]);
    const types = new Map();
    for (const layer of inner) types.set(layers.type[layer], (types.get(layers.type[layer]) || 0) + 1);
    const sum = (values) => values.reduce((a, b) => a + (b || 0), 0);
    const taken = Object.keys(layers.texts).length ? `, unknown sizes taken as ${layers.taken}` : "";
    const group = model.group(box);
    const kinds = {scope: "a scope of names", block: "a block that repeats", part: "a part of a long row", body: "a body"};
    return [
      this.#facts([
        ["what it is", kinds[group.kind]],
        ["layers", `${whole(inner.length)}, and ${whole([...model.within(box)].length - inner.length)} constants`],
        ["alike", model.alike.get(group.alike) > 1 ? `one of ${model.alike.get(group.alike)}` : ""],
        ["MACs", `${short(sum(inner.map((layer) => layers.macs[layer])))}${taken}`],
        ["bytes moved", `${short(sum(inner.map((layer) => layers.bytes[layer])), "B")}${taken}`],
        ["time", model.times ? micros(sum(inner.map((layer) => model.times.get(layer)))) : ""],
      ]),
      this.#diagnostics(inner, true),
      el("section", {}, el("h3", {}, "Types"), plainTable(["type", "#layers"], [...types].sort((a, b) => b[1] - a[1]).slice(0, 24).map(([type, count]) => [type, whole(count)]))),
    ];
  }
}

function scientificText(value) {
  return typeof value === "number" ? scientific(value) : String(value);
}
