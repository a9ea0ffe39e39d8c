// Puts the page together: timelines on the left, everything about a plan on the right.
const HELP = [
  ["drag, or A and D, or ← and →", "move in time"],
  ["Ctrl and wheel, double click, W and S, + and −", "zoom"],
  ["hover", "op, module, bytes, seconds, and why it waits; memory by tensor"],
  ["click, or N and P", "an op with its inputs and outputs; the next op, the one before"],
  ["↑ and ↓", "the device above or below"],
  ["C", "critical path on and off"],
  ["T", "arrows of transfers on and off"],
  ["H", "patterns on and off"],
  ["0 or Home", "the whole step"],
  ["/", "search"],
  ["Escape", "clear selection, search and filters"],
];

class Page {
  constructor(content) {
    this.content = content;
    this.plans = content.plans.map((plan) => new Plan(plan, content.graphs[plan.graph]));
    this.view = new Viewport(Math.max(...this.plans.map((plan) => plan.makespan)));
    this.details = new Details(this.view, (nodes) => this.showDetails(nodes));
    this.panes = this.plans.map((plan) => new Timeline(plan, this.view, this.details));
    this.chosen = 0;
    this.header();
    this.toolbar();
    document.getElementById("panes").append(...this.panes.map((pane) => pane.element));
    this.search = new Search(this.plans, this.view, this.panes, this.details);
    this.tabs();
    this.keys();
    this.view.fit();
  }

  header() {
    const [first] = this.plans;
    const title = `${first.graph.name} on ${first.cluster}`;
    document.title = `${title} – situate`;
    document.getElementById("title").textContent = title;
    const badges = first.figures
      .filter(([label]) => [first.objective, "lower bound", "gap"].includes(label))
      .map(([label, value]) =>
        el("span", { class: "badge" }, el("span", { class: "pale" }, `${label} `), value),
      );
    badges.push(
      el(
        "span",
        { class: first.fits ? "badge good" : "badge bad" },
        first.fits ? "✓ fits in memory" : "▲ does not fit",
      ),
    );
    document.getElementById("badges").append(...badges);
    this.notices();
  }

  notices() {
    const notices = this.plans
      .filter((plan) => plan.bars < plan.graph.count)
      .map(
        (plan) =>
          `${plan.label}: ${number(plan.graph.count)} ops are shown as ${number(plan.bars)} bars; a bar is a run of ops of one device and one colour.`,
      );
    notices.push(
      ...this.plans
        .filter((plan) => plan.memory.omitted)
        .map(
          (plan) =>
            `${plan.label}: the ${number(plan.memory.omitted)} smallest tensors are added up in the memory charts.`,
        ),
    );
    const box = document.getElementById("notice");
    box.textContent = notices.join(" ");
    box.hidden = !notices.length;
  }

  toolbar() {
    const bar = document.getElementById("toolbar");
    bar.append(
      this.button("Fit", "The whole step (0)", () => this.view.fit()),
      this.button("+", "Zoom in (+)", () => this.view.zoom(0.6), "zoom in"),
      this.button("−", "Zoom out (−)", () => this.view.zoom(1 / 0.6), "zoom out"),
      this.toggle("path", "Critical path"),
      this.toggle("arrows", "Transfers"),
      this.toggle("patterns", "Patterns"),
      ...this.filters(),
    );
    this.legend = el("span", { class: "legend" });
    bar.append(this.legend);
    this.drawLegend();
  }

  button(text, title, action, name = null) {
    return el("button", { type: "button", title, "aria-label": name, onclick: action }, text);
  }

  toggle(option, text) {
    const key = { path: "C", arrows: "T", patterns: "H" }[option];
    const button = el(
      "button",
      {
        type: "button",
        title: `${text} on and off (${key})`,
        "aria-pressed": String(this.view.options[option]),
        onclick: () => this.view.toggle(option),
      },
      text,
    );
    this.view.subscribe(() => {
      button.setAttribute("aria-pressed", String(this.view.options[option]));
      if (option === "patterns") this.drawLegend();
    });
    return button;
  }

  drawLegend() {
    const { patterns } = this.view.options;
    if (this.legend.dataset.patterns === String(patterns)) return;
    this.legend.dataset.patterns = String(patterns);
    const entries = this.plans[0].graph.classes.map((label, i) =>
      el("span", { class: "entry" }, swatch(i, label, patterns), shortened(label, 24)),
    );
    this.legend.replaceChildren(...entries);
  }

  /** Menus of slices, replicas and parts, if the step has any. */
  filters() {
    return DIVISIONS
      .map((column) => {
        const last = Math.max(
          ...this.plans.map((plan) => plan.graph.ops[column].reduce((a, b) => Math.max(a, b), -1)),
        );
        if (last < 0) return null;
        const numbers = [...Array(last + 1).keys()].map((i) =>
          el("option", { value: String(i) }, `${column} ${i}`),
        );
        const menu = el(
          "select",
          {
            "aria-label": `Show one ${column}`,
            onchange: (event) => {
              const { value } = event.target;
              this.view.filter(column, value === "" ? null : Number(value));
            },
          },
          el("option", { value: "" }, `all ${column}s`),
          ...numbers,
        );
        this.view.subscribe(() => {
          menu.value = String(this.view.only[column] ?? "");
        });
        return menu;
      })
      .filter(Boolean);
  }

  tabs() {
    const tabs = {
      Plan: () => overview(this.plans),
      Details: () =>
        this.lastDetails || [
          el("p", { class: "pale" }, "Click an op, a transfer, or a memory chart."),
        ],
      Modules: () => [this.tree()],
      Cluster: () => [clusterPicture(this.plans[this.chosen])],
      Why: () => explanation(this.plans),
    };
    if (this.plans.length > 1)
      tabs.Compare = () => differencesOf(this.plans, this.content.differences);
    this.contents = tabs;
    const bar = document.getElementById("tabs");
    for (const name of Object.keys(tabs)) {
      bar.append(
        el(
          "button",
          {
            role: "tab",
            type: "button",
            id: `tab-${name}`,
            "aria-controls": "panel",
            onclick: () => this.open(name),
          },
          name,
        ),
      );
    }
    bar.addEventListener("keydown", (event) => this.tabKey(event));
    this.open("Plan");
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(this.contents);
    const next = names[(names.indexOf(this.tab) + step + names.length) % names.length];
    this.open(next);
    document.getElementById(`tab-${next}`).focus();
    event.stopPropagation();
  }

  open(name) {
    this.tab = name;
    for (const button of document.querySelectorAll("[role=tab]")) {
      const current = button.id === `tab-${name}`;
      button.setAttribute("aria-selected", String(current));
      button.tabIndex = current ? 0 : -1;
    }
    const panel = document.getElementById("panel");
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    const menu =
      ["Modules", "Cluster"].includes(name) && this.plans.length > 1 ? [this.planMenu(name)] : [];
    panel.replaceChildren(...menu, ...this.contents[name]());
    panel.scrollTop = 0;
  }

  planMenu(tab) {
    const options = this.plans.map((plan, i) =>
      el("option", { value: String(i), selected: i === this.chosen }, plan.label),
    );
    return el(
      "select",
      {
        "aria-label": "Plan",
        onchange: (event) => {
          this.chosen = Number(event.target.value);
          this.open(tab);
        },
      },
      ...options,
    );
  }

  tree() {
    const plan = this.plans[this.chosen];
    plan.tree ??= new ModuleTree(plan, this.view);
    return plan.tree.element;
  }

  showDetails(nodes) {
    this.lastDetails = nodes;
    this.open("Details");
  }

  keys() {
    const help = document.getElementById("help");
    help.append(
      el("h2", {}, "Keys and mouse"),
      tableOf([], HELP),
      this.button("Close", "Close", () => help.close()),
    );
    document.getElementById("keys").addEventListener("click", () => help.showModal());
    document.getElementById("theme").addEventListener("click", () => switchTheme(this.view));
    document.addEventListener("keydown", (event) => this.key(event, help));
  }

  key(event, help) {
    if (
      event.target.matches("input, select, textarea") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    const actions = {
      c: () => this.view.toggle("path"),
      t: () => this.view.toggle("arrows"),
      h: () => this.view.toggle("patterns"),
      w: () => this.view.zoom(0.6),
      s: () => this.view.zoom(1 / 0.6),
      a: () => this.view.pan(-0.1),
      d: () => this.view.pan(0.1),
      "+": () => this.view.zoom(0.6),
      "=": () => this.view.zoom(0.6),
      "-": () => this.view.zoom(1 / 0.6),
      0: () => this.view.fit(),
      "/": () => this.search.input.focus(),
      "?": () => help.showModal(),
      Escape: () => this.clear(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  clear() {
    Object.assign(this.view, { only: {}, match: null, selection: null });
    this.view.changed();
  }
}

function switchTheme(view) {
  const root = document.documentElement;
  root.dataset.theme = isDark() ? "light" : "dark";
  view.changed();
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function start() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  try {
    const data = document.getElementById("data");
    const content = await unpack(data.textContent);
    data.remove();
    window.situate = new Page(content); // for a look from the browser's console
    requestAnimationFrame(() => {
      performance.mark("first-picture");
      document.body.dataset.state = "shown";
    });
  } catch (error) {
    const notice = document.getElementById("notice");
    document.body.dataset.state = "failed";
    notice.hidden = false;
    notice.textContent = `This report cannot be shown: ${error.message}. It needs a browser of 2023 or newer, and the whole file.`;
    throw error;
  }
}

// The data follow the script, so that half a file still says that it is half a file.
document.addEventListener("DOMContentLoaded", start);
