// What is selected, one box for all tabs, and the address that leads to it: #tab=layers&layer=body/conv1.
"use strict";

class Selection {
  constructor(model) {
    this.model = model;
    this.box = null;
    this.tab = null;
    this.listeners = [];
  }

  // Called with the box, or null, and where the change came from.
  listen(listener) {
    this.listeners.push(listener);
  }

  set(box, from = "") {
    if (this.box === box && from !== "address") return;
    this.box = box;
    this.write();
    for (const listener of this.listeners) listener(box, from);
  }

  // The address of a box, as it is written behind the #.
  address(box, tab = this.tab) {
    const parts = [];
    if (tab) parts.push(`tab=${tab}`);
    if (box !== null && this.model.isLayer(box)) {
      const path = this.model.path(box);
      parts.push(`layer=${encodeURIComponent(path)}`);
      if (this.model.find(path) !== box) parts.push(`number=${box}`);
    } else if (box !== null) {
      parts.push(`group=${box - this.model.count}`);
    }
    return `#${parts.join("&")}`;
  }

  write() {
    const address = this.address(this.box);
    if (location.hash !== address) history.replaceState(null, "", address);
  }

  // Where the address leads: a tab, a box, and the path of a layer that is not there.
  addressed() {
    const given = new Map();
    for (const part of location.hash.slice(1).split("&")) {
      const [name, value] = part.split("=", 2);
      try {
        given.set(name, decodeURIComponent(value || ""));
      } catch {
        given.set(name, "");
      }
    }
    let box = null;
    if (given.has("layer")) box = this.model.find(given.get("layer"), Number(given.get("number") ?? NaN));
    else if (given.has("group")) {
      const group = this.model.count + Number(given.get("group"));
      if (this.model.group(group)) box = group;
    }
    const missing = box === null && given.has("layer") ? given.get("layer") : null;
    return {tab: given.get("tab") || null, box, missing};
  }
}
