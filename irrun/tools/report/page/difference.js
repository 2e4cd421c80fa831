// The tab of differences: what is the same in many places once, with the layers of both models side by side.
"use strict";

function differenceTab(panel, model, selection, details) {
  const {difference} = model.data;
  const [old, other] = difference.models;
  const layer = ([number, name, type]) => el("div", {}, el("b", {}, named(type)), " ", number === null ? named(name) : details.link(number, name));
  replaceIn(
    panel,
    el("p", {class: `lead ${difference.equal ? "ok" : "warning"}`}, difference.equal ? "The same model" : "Another model",
      `: ${whole(difference.layers[0])} layers here, ${whole(difference.layers[1])} there, ${whole(difference.matched)} in both.`,
      difference.followed ? ` Types or shapes of ${many(difference.followed, "tensor")} follow from what is told.` : ""),
    difference.divergence ? el("p", {}, "On the same inputs: ", named(difference.divergence)) : null,
    difference.groups.map((group) => el(
      "details",
      {class: `change ${group.silent ? "silent" : ""}`, open: difference.groups.length <= 12 && group.count <= 12},
      el("summary", {}, el("span", {class: "code"}, group.kind), " ", named(group.message), group.count > 1 ? el("span", {class: "count"}, `× ${whole(group.count)}`) : ""),
      el("table", {class: "plain-table sides"},
        el("thead", {}, el("tr", {}, el("th", {scope: "col"}, named(old)), el("th", {scope: "col"}, named(other)), el("th", {scope: "col"}, "where"))),
        el("tbody", {}, group.places.map((place) => el("tr", {},
          el("td", {}, place.before.map(layer)),
          el("td", {}, place.after.map(([name, type]) => el("div", {}, el("b", {}, named(type)), " ", named(name)))),
          el("td", {}, [place.role, place.place, place.inside].filter(Boolean).map((text) => el("div", {}, named(text))),
            Object.entries(place.details).map(([name, value]) => el("small", {}, named(`${name} ${value}`), " "))))))),
      group.count > group.places.length ? el("p", {class: "hint"}, `and ${whole(group.count - group.places.length)} more places`) : null,
    )),
    difference.left_out ? el("p", {class: "hint"}, `and ${whole(difference.left_out)} more kinds of differences`) : null,
  );
  return {};
}
