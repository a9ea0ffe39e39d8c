// The part of the step that all timelines show, and what is selected in it.
const CLOSEST = 1e-7;
/** Columns of ops by which a step is divided; a filter shows one number of each. */
const DIVISIONS = ["slice", "replica", "part"];

class Viewport {
  constructor(total) {
    this.total = total || 1;
    this.from = 0;
    this.to = this.total;
    this.listeners = [];
    this.options = { path: false, arrows: true, patterns: true };
    this.only = {};
    this.selection = null;
    this.cursor = null;
    this.match = null;
    this.scheduled = false;
  }

  get span() {
    return this.to - this.from;
  }

  /** Calls `listener` before the next frame that follows a change. */
  subscribe(listener) {
    this.listeners.push(listener);
  }

  changed() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      for (const listener of this.listeners) listener();
    });
  }

  show(from, to) {
    const span = Math.min(Math.max(to - from, this.total * CLOSEST), this.total * 1.02);
    const middle = (from + to) / 2;
    const margin = 0.01 * this.total;
    this.from = Math.min(Math.max(middle - span / 2, -margin), this.total + margin - span);
    this.to = this.from + span;
    this.changed();
  }

  fit() {
    this.show(0, this.total);
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    this.show(this.from + share * this.span, this.to + share * this.span);
  }

  /** Shows an interval with room around it, unless it is well visible already. */
  reveal(start, end) {
    const visible = start >= this.from && end <= this.to && end - start > this.span / 300;
    if (visible) return;
    const width = Math.max((end - start) * 6, this.total * 1e-4);
    const middle = (start + end) / 2;
    this.show(middle - width / 2, middle + width / 2);
  }

  select(plan, item) {
    this.selection = item === null ? null : { plan, item };
    this.changed();
  }

  /** The divisions of which the timelines show one number. */
  get filters() {
    return DIVISIONS.filter((division) => division in this.only);
  }

  /** Shows one number of a division, or all if it is null. */
  filter(division, number) {
    if (number === null) delete this.only[division];
    else this.only[division] = number;
    this.changed();
  }

  toggle(option) {
    this.options[option] = !this.options[option];
    this.changed();
  }
}
