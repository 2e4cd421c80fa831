// The tab of diagnostics: each with the line that it is about, those of a severity at a time if one likes.
"use strict";

const AT_ONCE = 200;
const OTHERS = 12;
const SEVERITIES = {error: "error", warning: "warning", info: "note"};

class DiagnosticsTab {
  constructor(panel, model, selection, details) {
    Object.assign(this, {model, selection, details, most: AT_ONCE});
    this.kinds = new Set(Object.keys(SEVERITIES));
    this.list = el("div", {class: "diagnostics"});
    const counts = model.data.counts;
    panel.append(
      el("div", {class: "bar"}, Object.entries(SEVERITIES).map(([severity, title]) => el("label", {},
        el("input", {type: "checkbox", checked: true, disabled: !counts[severity], onchange: (event) => this.#toggle(severity, event.target.checked)}),
        ` ${many(counts[severity] || 0, title)}`))),
      this.list,
    );
    this.#draw();
    selection.listen((box, from) => from !== "diagnostics" && this.#scroll(box));
  }

  #toggle(severity, shown) {
    if (shown) this.kinds.add(severity);
    else this.kinds.delete(severity);
    this.#draw();
  }

  #draw() {
    const found = this.model.data.diagnostics.filter(({severity}) => this.kinds.has(severity));
    const rest = found.length - this.most;
    replaceIn(this.list,
      found.slice(0, this.most).map((each) => this.#article(each)),
      found.length ? null : el("p", {}, this.model.data.diagnostics.length ? "None of these." : "Nothing is wrong with this model."),
      rest > 0 && el("button", {class: "quiet-button", onclick: () => { this.most += AT_ONCE; this.#draw(); }}, `show more of ${whole(rest)}`));
  }

  #article(found) {
    const {excerpt} = found;
    return el("article", {class: `diagnostic ${found.severity}`, "data-code": found.code, "data-number": this.model.data.diagnostics.indexOf(found)},
      el("h3", {}, el("span", {class: "code", title: found.title}, `${found.severity}[${found.code}]`), " ", named(found.message)),
      el("p", {class: "where"}, found.line ? `line ${found.line}${found.column ? `, column ${found.column}` : ""}` : null,
        found.layer !== null ? [found.line ? ", " : "", "layer ", el("button", {class: "link", onclick: () => this.selection.set(found.layer, "diagnostics")}, named(found.about))]
          : found.about ? [", layer ", named(found.about)] : null, this.#others(found)),
      excerpt && el("pre", {class: "excerpt"}, el("span", {class: "line-number"}, String(found.line)),
        excerpt.text.slice(0, excerpt.from), el("mark", {}, excerpt.text.slice(excerpt.from, excerpt.from + excerpt.length) || " "), excerpt.text.slice(excerpt.from + excerpt.length)),
      found.notes.map(([message, line]) => el("p", {class: "note"}, el("b", {}, "note "), named(message), line ? ` at line ${line}` : "")),
      found.help && el("p", {class: "note"}, el("b", {}, "help "), named(found.help)));
  }

  // The other places of which the same is said.
  #others({layers, more}) {
    if (!more) return null;
    const rest = layers.length - 1 - OTHERS;
    if (layers.length < 2) return `; ${more}`;
    const links = layers.slice(1, 1 + OTHERS).map((layer, place) => [place ? ", " : ": lines ", this.details.link(layer, String(this.model.layers.line[layer] ?? "?"))]);
    return [`; ${more.split(":")[0]}`, links, rest > 0 ? ", …" : ""];
  }

  #scroll(box) {
    if (box === null || !this.list.offsetParent) return;
    const [number] = this.model.diagnostics.get(box) || [];
    const article = this.list.querySelector(`[data-number="${number}"]`);
    if (article) article.scrollIntoView({block: "center"});
  }
}
