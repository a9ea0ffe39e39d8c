// Figures of plans, the lower bound, methods side by side, and differences between plans.
function overview(plans) {
  const labels = [...new Set(plans.flatMap((plan) => plan.figures.map(([label]) => label)))];
  const figure = (plan, label) => (plan.figures.find(([name]) => name === label) || ["", "–"])[1];
  const several = plans.length > 1;
  const rows = labels.map((label) => {
    const values = plans.map((plan) => figure(plan, label));
    const differs = several && new Set(values).size > 1;
    return [el("span", { class: differs ? "differs" : "" }, label), ...values];
  });
  return [
    el("div", { class: "figures" }, tableOf(["figure", ...plans.map((plan) => plan.label)], rows)),
    several ? el("p", { class: "pale" }, "Figures that differ are in bold.") : null,
    ...plans.map((plan) => boundSection(plan, several)),
    ...plans.filter((plan) => plan.methods.length).map(methodTable),
  ].filter(Boolean);
}

function boundSection(plan, several) {
  const { bound } = plan;
  const bars =
    bound.value === undefined
      ? []
      : [
          bar(`lower bound ${bound.text}`, bound.value / bound.plan, "bound"),
          bar(`${plan.objective} ${bound.plan_text}`, 1, "value"),
        ];
  const by = bound.name ? ` It is the bound by ${bound.name}.` : "";
  return el(
    "section",
    {},
    el("h3", {}, several ? `Lower bound of ${plan.label}` : "Lower bound"),
    el("p", {}, `${bound.statement}${by} ${bound.argument}`),
    ...bars,
  );
}

function bar(text, share, kind) {
  const filled = el("span", { class: `bar ${kind}` });
  filled.style.width = `${100 * Math.min(1, Math.max(0, share || 0))}%`;
  return el(
    "div",
    { class: "bar-row" },
    el("span", { class: "bar-text" }, text),
    el("span", { class: "bar-back" }, filled),
  );
}

function methodTable(plan) {
  const rows = plan.methods.map((row) => [
    row.method,
    row.value,
    row.gap,
    row.peak,
    row.devices,
    row.fits,
    row.search,
  ]);
  const headings = ["method", plan.objective, "gap", "peak memory", "devices", "fits", "search"];
  return el(
    "section",
    {},
    el("h3", {}, "Methods"),
    el(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Methods" },
      tableOf(headings, rows, [1, 2, 3, 4, 6]),
    ),
  );
}

function explanation(plans) {
  return plans.map((plan) =>
    el(
      "section",
      {},
      plans.length > 1 ? el("h3", {}, plan.label) : null,
      el("pre", { tabindex: "0" }, plan.explanation.join("\n")),
    ),
  );
}

function differencesOf(plans, differences) {
  const first = plans[0];
  return differences.map((difference, i) => differenceSection(first, plans[i + 1], difference));
}

function differenceSection(first, other, difference) {
  const { moved, common, only_first: gone, only_other: added, modules } = difference;
  const sentences = [
    difference.same ? "Both are the same plan." : null,
    common
      ? `${number(moved)} of ${number(common)} common ops are on another device.`
      : "The plans have no op in common.",
    gone ? `${plural(gone, "op")} only in ${first.label}.` : null,
    added ? `${plural(added, "op")} only in ${other.label}.` : null,
  ].filter(Boolean);
  const rows = modules.map(([module, count, seconds, before, after]) => [
    shortened(module || "(no module)", 40),
    number(count),
    timeText(seconds, other.unit),
    `${before} → ${after}`,
  ]);
  return el(
    "section",
    {},
    el("h3", {}, `${other.label} against ${first.label}`),
    el("p", {}, sentences.join(" ")),
    loadTable(first, other),
    rows.length ? tableOf(["module", "ops", "time", "device"], rows, [1, 2]) : null,
  );
}

/** Busy share and peak of the devices of both plans. */
function loadTable(first, other) {
  const names = [...new Set([...first.devices, ...other.devices].map((device) => device.name))];
  const cells = (plan, name) => {
    const device = plan.devices.find((d) => d.name === name);
    return device
      ? [shareText(device.busy / (plan.makespan || 1)), sizeText(device.peak)]
      : ["–", "–"];
  };
  const rows = names.map((name) => [name, ...cells(first, name), ...cells(other, name)]);
  const headings = ["device", `busy, ${first.label}`, "peak", `busy, ${other.label}`, "peak"];
  return tableOf(headings, rows, [1, 2, 3, 4]);
}
