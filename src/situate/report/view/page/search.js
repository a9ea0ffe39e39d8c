// The search box: modules and ops whose names contain the text.
const MAX_MATCHES = 40;

class Search {
  constructor(plans, view, panes, details) {
    Object.assign(this, { plans, view, panes, details });
    this.input = el("input", {
      type: "search",
      placeholder: "Search ops and modules  ( / )",
      "aria-label": "Search ops and modules",
      oninput: () => this.find(),
      onkeydown: (event) => this.key(event),
    });
    this.results = el("ul", { class: "results", "aria-label": "Matches", hidden: true });
    document.getElementById("search").append(this.input, this.results);
    this.input.addEventListener("blur", () =>
      setTimeout(() => {
        this.results.hidden = true;
      }, 200),
    );
  }

  find() {
    const text = this.input.value.trim().toLowerCase();
    const plan = this.plans[0];
    if (!text) {
      this.view.match = null;
      this.results.hidden = true;
      this.view.changed();
      return;
    }
    const matches = matchesOf(plan, text);
    this.view.match = { plan, flags: matches.flags, text };
    this.view.changed();
    this.list(plan, matches);
  }

  list(plan, { ops, count }) {
    const rows = ops.map((op) => {
      const seconds = timeText(plan.ops.end[op] - plan.ops.start[op], plan.unit);
      return el(
        "li",
        {},
        el(
          "button",
          {
            type: "button",
            onmousedown: () => this.open(op),
            onclick: () => this.open(op),
          },
          el("span", {}, shortened(plan.opName(op), 60)),
          el("span", { class: "pale" }, ` ${seconds} · ${deviceOf(plan, op)}`),
        ),
      );
    });
    const text =
      count > ops.length
        ? `${number(count)} ops match; the longest are listed`
        : plural(count, "match").replace("matchs", "matches");
    this.results.replaceChildren(el("li", { class: "pale" }, text), ...rows);
    this.results.hidden = false;
  }

  open(op) {
    this.panes[0].controls.choose(op);
    this.results.hidden = true;
  }

  key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.find();
      this.input.blur();
    }
    if (event.key === "Enter") this.results.querySelector("button")?.click();
    event.stopPropagation();
  }
}

/** Flags of the bars whose name or module contains `text`, and the longest of them. */
function matchesOf(plan, text) {
  const names = plan.graph.ops.name.lines;
  const { of, texts } = plan.graph.ops.module;
  const inModule = texts.lines.map((path) => path.toLowerCase().includes(text));
  const flags = new Uint8Array(plan.n);
  const matching = [];
  for (let op = 0; op < plan.n; op++) {
    if (inModule[of[op]] || names[op].toLowerCase().includes(text)) {
      flags[op] = 1;
      matching.push(op);
    }
  }
  const { start, end } = plan.ops;
  matching.sort((a, b) => end[b] - start[b] - (end[a] - start[a]));
  return { flags, count: matching.length, ops: matching.slice(0, MAX_MATCHES) };
}
