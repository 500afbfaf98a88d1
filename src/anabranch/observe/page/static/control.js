// Commands by hand: tried on paper first, done or cancelled after.

import { ask, store } from "./store.js";
import { clock, el, fill } from "./format.js";

const COMMANDS = {
  move: ["Move", ["subquery", "partition", "site"]], pin: ["Pin", ["subquery", "partition", "site"]], unpin: ["Unpin", ["subquery", "partition"]],
  pause: ["Pause", ["subquery", "partition"]], resume: ["Resume", ["subquery", "partition"]], spill: ["Put aside", ["subquery", "partition"]],
  clean_up: ["Bring back", ["subquery", "partition"]], rebalance: ["Rebalance", []], set_sites: ["Number of sites", ["sites"]],
};
let made = false;

export function setUpControl() {
  if (made || !store.control || !store.run) return;
  made = true;
  document.getElementById("view-control").hidden = false;
  const which = el("select", { name: "command" }, ...Object.entries(COMMANDS).map(([name, [label]]) => el("option", { value: name }, label)));
  const fields = {
    subquery: el("select", { name: "subquery" }, ...store.run.plan.subqueries.map((one) => el("option", { value: one.name }, one.name))),
    partition: el("input", { type: "number", name: "partition", min: "0", value: "0", required: true }),
    site: el("input", { type: "number", name: "site", min: "0", value: "0", required: true }),
    sites: el("input", { type: "number", name: "sites", min: "1", value: String(store.status.sites), required: true }),
  };
  const labels = { subquery: "Subquery", partition: "Partition (first slot)", site: "To site", sites: "Sites" };
  const wrapped = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, el("label", {}, labels[name], field)]));
  const answer = el("div", { "aria-live": "polite", id: "answer" });
  const fit = () => Object.entries(wrapped).forEach(([name, label]) => { const used = COMMANDS[which.value][1].includes(name); label.hidden = !used; fields[name].disabled = !used; });
  which.addEventListener("change", fit);
  const say = (...parts) => fill(answer, el("div", { class: "effect" }, ...parts));
  const form = el("form", { onsubmit: async (event) => {
    event.preventDefault();
    const names = COMMANDS[which.value][1];
    const given = Object.fromEntries(names.map((name) => [name, name === "subquery" ? fields[name].value : Number(fields[name].value)]));
    try {
      const { ticket, effect } = await ask("/api/try", { command: which.value, arguments: given });
      const done = async (path, text) => { try { await ask(path, { ticket }); say(text); } catch (error) { say(`It was refused: ${error.message}`); } };
      say(effect, el("div", {}, el("button", { type: "button", class: "go", id: "do", onclick: () => done("/api/do", "Done: it holds from the next epoch on.") }, "Do it"),
        el("button", { type: "button", class: "quiet", id: "cancel", onclick: () => done("/api/cancel", "Nothing was done.") }, "Cancel")));
    } catch (error) { say(`That cannot be done: ${error.message}`); }
  } }, el("label", {}, "Command", which), ...Object.values(wrapped), el("button", { class: "go", id: "try" }, "Try on paper"));
  fill(document.getElementById("control"), form, answer, el("ol", { class: "list", id: "commands" }));
  fit();
}

export function renderControl() {
  setUpControl();
  const list = document.getElementById("commands");
  if (list) fill(list, ...[...store.commands].reverse().map((one) => el("li", {}, `${one.command} ${Object.values(one.arguments).join(" ")}`, el("small", {}, `${one.state}, ${clock(one.at)}`))));
}
