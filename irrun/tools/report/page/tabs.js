// Tabs as people with keyboards and screen readers know them: one is in the order of focus, arrows lead to the others.
"use strict";

// Each of `tabs` is {id, title, count, build}: build(panel) is called when the tab is first shown.
class Tabs {
  constructor(tabs, changed) {
    this.tabs = tabs;
    this.changed = changed;
    this.current = null;
    this.list = el("div", {role: "tablist", class: "tabs", "aria-label": "Parts of the report"});
    this.panels = el("div", {class: "panels"});
    for (const tab of tabs) {
      tab.button = el(
        "button",
        {
          role: "tab", id: `tab-${tab.id}`, "aria-controls": `panel-${tab.id}`, "aria-selected": "false", tabindex: "-1",
          onclick: () => this.show(tab.id), onkeydown: (event) => this.#moved(event, tab),
        },
        tab.title,
        tab.count ? el("span", {class: `count ${tab.severity || ""}`}, whole(tab.count)) : null,
      );
      tab.panel = el("div", {
        role: "tabpanel", id: `panel-${tab.id}`, class: `panel ${tab.id}`, "aria-labelledby": `tab-${tab.id}`,
        tabindex: "-1", hidden: true,
      });
      this.list.append(tab.button);
      this.panels.append(tab.panel);
    }
  }

  has(id) {
    return this.tabs.some((tab) => tab.id === id);
  }

  // What `build` of a tab has returned.
  view(id) {
    return this.tabs.find((tab) => tab.id === id).view;
  }

  show(id) {
    if (this.current === id) return;
    this.current = id;
    for (const tab of this.tabs) {
      const chosen = tab.id === id;
      tab.button.setAttribute("aria-selected", String(chosen));
      tab.button.tabIndex = chosen ? 0 : -1;
      tab.panel.hidden = !chosen;
      if (!chosen) continue;
      if (tab.build) {
        const build = tab.build;
        tab.build = null;
        tab.view = build(tab.panel) || null;
      }
      if (tab.view && tab.view.shown) tab.view.shown();
    }
    this.changed(id);
  }

  #moved(event, tab) {
    const steps = {ArrowRight: 1, ArrowLeft: -1};
    const place = this.tabs.indexOf(tab);
    let next = null;
    if (event.key in steps) next = (place + steps[event.key] + this.tabs.length) % this.tabs.length;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = this.tabs.length - 1;
    if (next === null) return;
    event.preventDefault();
    this.show(this.tabs[next].id);
    this.tabs[next].button.focus();
  }
}
