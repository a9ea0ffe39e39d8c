// The tree of modules, with each module's time, memory and devices.
const MAX_TREE_ROWS = 400;

class ModuleNode {
  constructor(name, path) {
    this.name = name;
    this.path = path;
    this.children = new Map();
    this.seconds = 0;
    this.held = 0;
    this.count = 0;
    this.byDevice = new Map();
    this.from = Infinity;
    this.to = -Infinity;
  }

  add(seconds, held, count, device, start, end) {
    this.seconds += seconds;
    this.held += held;
    this.count += count;
    this.byDevice.set(device, (this.byDevice.get(device) || 0) + (seconds || 1e-30));
    this.from = Math.min(this.from, start);
    this.to = Math.max(this.to, end);
  }
}

/** The modules of a plan as a tree; ops without a module are in `(no module)`. */
function moduleTree(plan) {
  const root = new ModuleNode(plan.graph.name, "");
  const { of, texts } = plan.graph.ops.module;
  const chains = texts.lines.map((path) => chainOf(root, path));
  const { start, end, device } = plan.ops;
  const { persistent, count } = plan.graph.ops;
  for (let op = 0; op < plan.n; op++) {
    for (const node of chains[of[op]]) {
      node.add(end[op] - start[op], persistent[op], count[op], device[op], start[op], end[op]);
    }
  }
  return root;
}

function chainOf(root, path) {
  const chain = [root];
  for (const part of path ? path.split(".") : ["(no module)"]) {
    const parent = chain.at(-1);
    if (!parent.children.has(part)) {
      const own = parent.path ? `${parent.path}.${part}` : part;
      parent.children.set(part, new ModuleNode(part, own));
    }
    chain.push(parent.children.get(part));
  }
  return chain;
}

class ModuleTree {
  constructor(plan, view) {
    this.plan = plan;
    this.view = view;
    this.root = moduleTree(plan);
    this.open = new Set(this.openAtFirst());
    this.search = "";
    this.list = el("div", { role: "tree", class: "tree", "aria-label": "Modules" });
    const input = el("input", {
      type: "search",
      placeholder: "Search modules",
      "aria-label": "Search modules",
      oninput: (event) => {
        this.search = event.target.value.toLowerCase();
        this.render();
      },
    });
    const header = el(
      "div",
      { class: "tree-row head" },
      el("span", {}, "module"),
      el("span", {}, "devices"),
      el("span", {}, "time"),
      el("span", {}, "held"),
    );
    this.element = el("div", {}, input, this.legend(), header, this.list);
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.render();
  }

  /** The root, and below it each module that holds nearly all the time of the one above. */
  openAtFirst() {
    const paths = [""];
    for (let node = this.root; node; paths.push(node?.path ?? "")) {
      node = [...node.children.values()].find(
        (child) => child.children.size && child.seconds > 0.9 * node.seconds,
      );
    }
    return paths;
  }

  legend() {
    const entries = this.plan.devices
      .slice(0, 16)
      .map((device, d) =>
        el("span", { class: "entry" }, deviceMark(d), shortened(device.name, 14)),
      );
    return el("p", { class: "legend" }, ...entries);
  }

  /** The visible rows: of a search all matches with their parents, else the open parts. */
  rows() {
    const rows = [];
    const visit = (node, depth) => {
      if (rows.length > MAX_TREE_ROWS) return;
      rows.push([node, depth]);
      if (!this.search && !this.open.has(node.path)) return;
      for (const child of node.children.values()) {
        if (!this.search || this.matches(child)) visit(child, depth + 1);
      }
    };
    visit(this.root, 0);
    return rows;
  }

  matches(node) {
    if (node.path.toLowerCase().includes(this.search)) return true;
    return [...node.children.values()].some((child) => this.matches(child));
  }

  render() {
    const rows = this.rows();
    const shown = rows.slice(0, MAX_TREE_ROWS).map(([node, depth]) => this.row(node, depth));
    if (rows.length > MAX_TREE_ROWS)
      shown.push(el("p", { class: "pale" }, "More: search, or close some parts."));
    this.list.replaceChildren(...shown);
    if (this.list.firstChild) this.list.firstChild.tabIndex = 0;
  }

  row(node, depth) {
    const leaf = node.children.size === 0;
    const expanded = this.open.has(node.path) || Boolean(this.search);
    const mark = leaf ? "" : expanded ? "▾" : "▸";
    const row = el(
      "div",
      {
        role: "treeitem",
        class: "tree-row",
        tabindex: "-1",
        "aria-level": String(depth + 1),
        "aria-expanded": leaf ? null : String(expanded),
        title: node.path,
        onclick: () => this.toggle(node),
      },
      el("span", { class: "tree-name" }, el("span", { class: "mark" }, mark), node.name),
      this.shares(node),
      el("span", { class: "right" }, timeText(node.seconds, this.plan.unit)),
      el("span", { class: "right" }, sizeText(node.held)),
    );
    row.querySelector(".tree-name").style.paddingLeft = `${12 * depth}px`;
    row.node = node;
    return row;
  }

  shares(node) {
    const total = [...node.byDevice.values()].reduce((a, b) => a + b, 0);
    const parts = [...node.byDevice]
      .sort((a, b) => a[0] - b[0])
      .map(([device, seconds]) => {
        const part = el("span", { class: "share" }, seconds / total > 0.18 ? String(device) : "");
        part.style.width = `${(100 * seconds) / total}%`;
        markDevice(part, device);
        return part;
      });
    const text = [...node.byDevice].map(
      ([d, s]) => `${this.plan.devices[d].name} ${shareText(s / total)}`,
    );
    return el(
      "span",
      { class: "shares", title: text.join("\n"), role: "img", "aria-label": text.join(", ") },
      ...parts,
    );
  }

  toggle(node) {
    if (this.open.has(node.path)) this.open.delete(node.path);
    else this.open.add(node.path);
    this.mark(node);
    this.render();
  }

  /** Dims the ops of all other modules in the timeline; the root shows all. */
  mark(node) {
    if (!node.path) {
      this.view.match = null;
      this.view.changed();
      return;
    }
    const { of, texts } = this.plan.graph.ops.module;
    const inside = texts.lines.map(
      (path) => `${path}.`.startsWith(`${node.path}.`) || (!path && node.path === "(no module)"),
    );
    const flags = Uint8Array.from(of, (module) => (inside[module] ? 1 : 0));
    this.view.match = { plan: this.plan, flags, text: node.path };
    this.view.changed();
  }

  key(event) {
    const row = event.target.closest(".tree-row");
    if (!row?.node) return;
    const rows = [...this.list.querySelectorAll(".tree-row")];
    const place = rows.indexOf(row);
    const isOpen = this.open.has(row.node.path);
    const moves = {
      ArrowDown: () => rows[place + 1]?.focus(),
      ArrowUp: () => rows[place - 1]?.focus(),
      ArrowRight: () => {
        if (!isOpen) this.toggleAt(row.node, place);
      },
      ArrowLeft: () => {
        if (isOpen) this.toggleAt(row.node, place);
      },
      Enter: () => this.toggleAt(row.node, place),
      " ": () => this.toggleAt(row.node, place),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }

  toggleAt(node, place) {
    this.toggle(node);
    this.list.querySelectorAll(".tree-row")[place]?.focus();
  }
}

/** The colour and the number of a device, on an element. */
function markDevice(element, device) {
  const color = colorOf(device);
  element.style.backgroundColor = color;
  element.style.color = ["#0072b2", "#d55e00"].includes(color) ? "#fff" : "#000";
}

function deviceMark(device) {
  const mark = el("span", { class: "device-mark" }, String(device));
  markDevice(mark, device);
  return mark;
}
