// The model of the report: its layers, the tree of boxes that they lie in, and all that is known of each.
//
// A box is a layer, by its number, or a group, by its number behind the layers; -1 is the graph of the model.
"use strict";

const ROOT = -1;

async function unpacked(id) {
  const letters = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

class Model {
  constructor(data) {
    const layers = data.layers;
    this.data = data;
    this.layers = layers;
    this.groups = layers.groups;
    this.count = layers.name.length;
    this.children = new Map();
    for (let box = 0; box < this.count + this.groups.length; box++) {
      const parent = this.parent(box);
      if (!this.children.has(parent)) this.children.set(parent, []);
      this.children.get(parent).push(box);
    }
    this.firsts = new Map();
    for (const listed of this.children.values()) listed.sort((a, b) => this.first(a) - this.first(b));
    this.alike = new Map();
    for (const group of this.groups) this.alike.set(group.alike, (this.alike.get(group.alike) || 0) + 1);
    this.readers = this.#readers();
    this.diagnostics = this.#diagnostics();
    this.times = this.#times();
    this.errors = this.#errors();
    this.paths = null;
  }

  parent(box) {
    if (box === ROOT) return null;
    return box < this.count ? this.layers.parent[box] : this.groups[box - this.count].parent;
  }

  group(box) {
    return box >= this.count ? this.groups[box - this.count] : null;
  }

  isLayer(box) {
    return box >= 0 && box < this.count;
  }

  // Whether it holds others: a group, or a layer with bodies.
  opens(box) {
    return this.children.has(box);
  }

  ancestors(box) {
    const found = [];
    for (let above = this.parent(box); above !== null && above !== ROOT; above = this.parent(above)) found.push(above);
    return found;
  }

  // The layer of it that comes first in the file.
  first(box) {
    if (this.isLayer(box)) return box;
    if (!this.firsts.has(box)) {
      this.firsts.set(box, this.count);
      this.firsts.set(box, Math.min(...(this.children.get(box) || []).map((child) => this.first(child)), this.count));
    }
    return this.firsts.get(box);
  }

  // All layers in it; of a layer, itself and those of its bodies.
  *within(box) {
    if (this.isLayer(box)) yield box;
    for (const child of this.children.get(box) || []) yield* this.within(child);
  }

  label(box) {
    return this.isLayer(box) ? this.layers.name[box] : box === ROOT ? this.data.summary.name : this.group(box).label;
  }

  // The last part of a name, behind the innermost scope unless the layer lies in the box of that.
  shortName(layer) {
    const name = this.layers.name[layer];
    const parts = name.split("/").filter((part) => part && !part.includes("::"));
    if (!parts.length) return name;
    const last = parts.pop();
    const scope = parts.join(".").split(".").at(-1);
    const around = this.group(this.parent(layer));
    const same = around && around.label.split(".").at(-1) === scope;
    return scope && scope !== "__module" && !same ? `${scope} / ${last}` : last;
  }

  // Where a layer is: its name, behind those of layers whose bodies it lies in.
  path(layer) {
    const parts = [this.layers.name[layer]];
    for (const box of this.ancestors(layer)) {
      if (this.isLayer(box)) parts.unshift(this.layers.name[box]);
      else if (this.group(box).kind === "body") parts.unshift(this.group(box).label);
    }
    return parts.join("/");
  }

  // The layer of a path; of several the one whose number is given. null where there is none.
  find(path, number = null) {
    if (this.paths === null) {
      this.paths = new Map();
      for (let layer = 0; layer < this.count; layer++) {
        const own = this.path(layer);
        if (!this.paths.has(own)) this.paths.set(own, []);
        this.paths.get(own).push(layer);
      }
    }
    const found = this.paths.get(path) || [];
    if (found.length) return found.includes(number) ? number : found[0];
    const byName = this.layers.name.indexOf(path);
    return byName < 0 ? null : byName;
  }

  // The inputs of a layer as [layer or -1, output number].
  inputs(layer) {
    const flat = this.layers.inputs[layer];
    return Array.from({length: flat.length / 2}, (_, number) => [flat[2 * number], flat[2 * number + 1]]);
  }

  tensor(layer, output) {
    const found = this.layers.outputs[layer][output];
    return found ? found[0] : "?";
  }

  portName(layer, side, number) {
    const names = (this.layers.ports[this.layers.op[layer]] || [[], []])[side];
    if (!names.length) return String(number);
    return names[number] || `${names.at(-1)} ${number - names.length + 1}`; // the last one may be there many times
  }

  // The type of the first output without its shape.
  elementType(layer) {
    const text = this.tensor(layer, 0);
    return text === "?" ? "" : text.slice(0, text.indexOf("["));
  }

  // MACs or bytes of a layer as text: arithmetic where sizes are unknown.
  cost(layer, name) {
    const texts = this.layers.texts[layer];
    if (texts && name in texts) return String(texts[name]);
    const value = this.layers[name][layer];
    return value === null ? "?" : whole(value);
  }

  #readers() {
    const readers = Array.from({length: this.count}, () => []);
    for (let layer = 0; layer < this.count; layer++) {
      this.inputs(layer).forEach(([source, output], number) => {
        if (source >= 0) readers[source].push([layer, number, output]);
      });
    }
    return readers;
  }

  #diagnostics() {
    const found = new Map();
    this.data.diagnostics.forEach((diagnostic, number) => {
      for (const layer of new Set(diagnostic.layers)) {
        if (!found.has(layer)) found.set(layer, []);
        found.get(layer).push(number);
      }
    });
    return found;
  }

  // Microseconds by layer: those of layers that are computed together belong to the first of them.
  #times() {
    if (!this.data.profile) return null;
    const times = new Map();
    for (const entry of this.data.profile.entries) {
      entry.layers.forEach((layer, number) => {
        times.set(layer, (times.get(layer) || 0) + (number ? 0 : entry.time));
      });
    }
    return times;
  }

  // The worst tensor of each layer in a comparison.
  #errors() {
    if (!this.data.comparison) return null;
    const errors = new Map();
    for (const tensor of this.data.comparison.tensors) {
      if (tensor.layer === null) continue;
      const known = errors.get(tensor.layer);
      if (!known || (!tensor.agrees && known.agrees) || real(tensor.own.nrmse) > real(known.own.nrmse)) {
        errors.set(tensor.layer, tensor);
      }
    }
    return errors;
  }
}
