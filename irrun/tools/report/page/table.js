// Tables of any number of rows, of which only those in sight are there: sorted by a click on a head, filtered, as CSV.
"use strict";

const ROW_HEIGHT = 26;
const ROWS_BEYOND = 12;
const MOST_PRINTED = 3000;

// Columns are {title, value(row), text(row), number, wide}: `value` is sorted by, `text` shown (`value` by default).
class Table {
  constructor({label, columns, rows, box, chosen, sorted = null, descending = false, file}) {
    Object.assign(this, {label, columns, rows, box, chosen, sorted, descending, file});
    this.words = [];
    this.active = null;
    this.filter = el("input", {
      type: "search", placeholder: "filter: words, all of which a row has", "aria-label": `Filter ${label}`,
      oninput: () => this.#filtered(),
    });
    this.status = el("span", {class: "hint", role: "status"});
    this.head = el("tr", {"aria-rowindex": "1"}, columns.map((column, number) => this.#head(column, number)));
    this.body = el("tbody");
    this.scroller = el(
      "div",
      {
        class: "scroller", tabindex: "0", role: "region", "aria-label": label,
        onscroll: () => this.#draw(), onkeydown: (event) => this.#moved(event),
      },
      el("table", {class: "rows"}, el("thead", {}, this.head), this.body),
    );
    this.element = el(
      "div",
      {class: "table"},
      el("div", {class: "bar"}, this.filter, this.status,
        file && el("button", {class: "quiet-button", onclick: () => this.download()}, "CSV")),
      this.scroller,
    );
    new ResizeObserver(() => this.#draw()).observe(this.scroller);
    window.addEventListener("beforeprint", () => this.#print(true));
    window.addEventListener("afterprint", () => this.#print(false));
    this.#arrange();
  }

  #head(column, number) {
    column.head = el("th", {scope: "col", class: column.number ? "number" : null},
      el("button", {onclick: () => this.#sort(number)}, column.title));
    return column.head;
  }

  #sort(number) {
    this.descending = this.sorted === number ? !this.descending : Boolean(this.columns[number].number);
    this.sorted = number;
    this.#arrange();
  }

  #filtered() {
    this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.#arrange();
  }

  text(row, column) {
    const value = column.text ? column.text(row) : column.value(row);
    return value === null || value === undefined ? "" : String(value);
  }

  // What is shown, in which order.
  #arrange() {
    let shown = this.rows;
    if (this.words.length) {
      shown = shown.filter((row) => {
        const line = this.columns.map((column) => this.text(row, column)).join("\t").toLowerCase();
        return this.words.every((word) => line.includes(word));
      });
    }
    if (this.sorted !== null) {
      const {value} = this.columns[this.sorted];
      const keyed = shown.map((row, place) => [value(row), place, row]);
      const absent = (key) => key === null || key === undefined || Number.isNaN(key);
      keyed.sort(([a, i], [b, j]) => {
        if (absent(a) || absent(b)) return absent(a) - absent(b) || i - j;
        const order = typeof a === "string" || typeof b === "string"
          ? String(a).localeCompare(String(b), "en", {numeric: true}) : a === b ? 0 : a - b;
        return (this.descending ? -order : order) || i - j;
      });
      shown = keyed.map(([, , row]) => row);
    }
    this.columns.forEach((column, number) => {
      const order = this.descending ? "descending" : "ascending";
      column.head.setAttribute("aria-sort", number === this.sorted ? order : "none");
    });
    this.shown = shown;
    const all = this.rows.length;
    this.element?.style.setProperty("--rows", String(shown.length));
    this.status.textContent = shown.length === all ? many(all, "row") : `${whole(shown.length)} of ${many(all, "row")}`;
    this.scroller.querySelector("table").setAttribute("aria-rowcount", String(shown.length + 1));
    this.#draw();
  }

  #draw() {
    const height = this.scroller.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - ROWS_BEYOND);
    const last = Math.min(this.shown.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * ROWS_BEYOND);
    const rows = [this.#gap(first)];
    for (let place = first; place < last; place++) rows.push(this.#row(this.shown[place], place));
    rows.push(this.#gap(this.shown.length - last));
    this.body.replaceChildren(...rows.filter(Boolean));
  }

  // On paper all rows are in sight, up to what a pile of paper can be.
  #print(printing) {
    if (!this.scroller.offsetParent) return;
    if (!printing) return this.#draw();
    const rows = this.shown.slice(0, MOST_PRINTED).map((row, place) => this.#row(row, place));
    return this.body.replaceChildren(...rows);
  }

  #gap(count) {
    if (count <= 0) return null;
    const cell = el("td", {colspan: String(this.columns.length)});
    cell.style.height = `${count * ROW_HEIGHT}px`;
    return el("tr", {class: "gap", "aria-hidden": "true"}, cell);
  }

  #row(row, place) {
    const box = this.box(row);
    return el(
      "tr",
      {
        "aria-rowindex": String(place + 2), "aria-selected": String(this.active !== null && row === this.active),
        "data-box": box ?? null, onclick: () => this.#choose(row),
      },
      this.columns.map((column) => {
        const text = this.text(row, column);
        const mark = column.mark ? column.mark(row) : null;
        return el("td", {class: [column.number ? "number" : "", column.wide ? "wide" : "", mark || ""].join(" ").trim() || null,
          title: text.length > 24 ? text : null}, named(text));
      }),
    );
  }

  #choose(row) {
    this.active = row;
    this.#draw();
    this.chosen(row);
  }

  #moved(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (!(event.key in steps) || !this.shown.length || event.target !== this.scroller) return;
    event.preventDefault();
    const place = this.active === null ? -1 : this.shown.indexOf(this.active);
    const next = Math.min(this.shown.length - 1, Math.max(0, place + steps[event.key]));
    this.#choose(this.shown[next]);
    this.#reveal(next);
  }

  #reveal(place) {
    const head = this.head.offsetHeight || ROW_HEIGHT;
    const top = place * ROW_HEIGHT, room = this.scroller.clientHeight - head;
    const {scrollTop} = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + room) this.scroller.scrollTop = top + ROW_HEIGHT - room;
    this.#draw();
  }

  // Show the row of a box that was selected elsewhere.
  select(box) {
    const place = box === null ? -1 : this.shown.findIndex((row) => this.box(row) === box);
    if (place >= 0 && this.active !== null && this.box(this.active) === box) return;
    this.active = place < 0 ? null : this.shown[place];
    if (place >= 0) this.#reveal(place);
    else this.#draw();
  }

  csv() {
    const cell = (text) => {
      const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text; // no formula for spreadsheets
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const lines = [this.columns.map((column) => cell(column.title))];
    for (const row of this.shown) lines.push(this.columns.map((column) => cell(this.#plain(row, column))));
    return lines.map((line) => `${line.join(",")}\n`).join("");
  }

  #plain(row, column) {
    const value = column.value(row);
    return column.number && typeof value === "number" ? String(value) : this.text(row, column);
  }

  download() {
    const address = URL.createObjectURL(new Blob([this.csv()], {type: "text/csv"}));
    el("a", {href: address, download: this.file}).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}
