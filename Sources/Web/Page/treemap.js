// The map of what is local: area by size, filled by how much of it is on this machine.
import { KeyedList, bytes, element, isolated, setAttribute, setShown, setText, visible } from "./elements.js";

/** Small items get more area than their size, so that each can be seen and clicked: together at most this share. */
const enlargedShare = 0.25;
/** The largest share that one of them gets. */
const smallestShare = 0.002;

/**
 * The squarified treemap of Bruls, Huizing and van Wijk: rectangles with aspect ratios near 1.
 *
 * `weights` descend and are positive. Returns a rectangle per weight.
 */
export function squarify(weights, width, height) {
  const scale = (width * height) / weights.reduce((sum, weight) => sum + weight, 0);
  const areas = weights.map((weight) => weight * scale);
  const rectangles = [];
  let [x, y, first] = [0, 0, 0];
  while (first < areas.length) {
    const side = Math.max(Math.min(width, height), 1e-6);
    let [end, sum, ratio] = [first, 0, Infinity];
    while (end < areas.length) {
      const next = sum + areas[end];
      const worst = Math.max((side * side * areas[first]) / (next * next), (next * next) / (side * side * areas[end]));
      if (worst > ratio) break;
      [sum, ratio, end] = [next, worst, end + 1];
    }
    const depth = sum / side;
    let offset = 0;
    for (; first < end; first += 1) {
      const length = areas[first] / depth;
      rectangles.push(
        width >= height
          ? { x, y: y + offset, width: depth, height: length }
          : { x: x + offset, y, width: length, height: depth });
      offset += length;
    }
    if (width >= height) [x, width] = [x + depth, width - depth];
    else [y, height] = [y + depth, height - depth];
  }
  return rectangles;
}

/** How much of an item is local, from 0 to 1. */
function localShare(entry) {
  if (entry.size > 0) return Math.min(entry.local / entry.size, 1);
  return entry.content === "materialized" ? 1 : 0;
}

export function localText(entry) {
  if (entry.size > 0) {
    if (entry.local >= entry.size) return `${bytes(entry.size)}, all on this machine`;
    if (entry.local <= 0) return `${bytes(entry.size)}, not on this machine`;
    return `${bytes(entry.local)} of ${bytes(entry.size)} on this machine`;
  }
  return entry.kind === "directory" && entry.content === "dataless" ? "not listed yet" : bytes(0);
}

/** The tiles of one directory. `choose(entry)` is called for the tile that is clicked, `leave()` for Backspace. */
export class Treemap {
  constructor(container, choose, leave) {
    Object.assign(this, { container, choose, entries: [], selected: null });
    this.tiles = new KeyedList(container, (entry) => entry.path ?? "", (entry) => this.makeTile(entry));
    this.message = element("p", { className: "message muted", hidden: true, tabIndex: -1 });
    container.after(this.message);
    new ResizeObserver(() => this.draw()).observe(container);
    container.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const nodes = [...container.querySelectorAll("button")];
      const at = nodes.indexOf(document.activeElement);
      const target = {
        ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: nodes.length - 1,
      }[event.key];
      if (event.key === "Backspace") leave();
      else if (target === undefined) return;
      else nodes[Math.min(Math.max(target, 0), nodes.length - 1)]?.focus();
      event.preventDefault();
    });
    // One tile is a tab stop, and arrow keys move between tiles: 300 tab stops would bar the way to the buttons below.
    container.addEventListener("focusin", (event) => this.setTabStop(event.target.closest("button")));
  }

  setTabStop(node) {
    if (!node) return;
    for (const other of this.container.querySelectorAll("button[tabindex='0']")) if (other !== node) other.tabIndex = -1;
    node.tabIndex = 0;
  }

  makeTile(entry) {
    const isLink = entry.path !== undefined;
    const fill = element("span", { className: "fill", "aria-hidden": "true" });
    const text = isolated();
    const name = element("span", { className: "name" }, text, entry.kind === "directory" ? "/" : "");
    const size = element("span", { className: "size" });
    const node = element(isLink ? "button" : "div", { className: `tile ${entry.kind}` }, fill, name, size);
    const tile = { node, name, size, entry };
    if (isLink) {
      Object.assign(node, { type: "button", tabIndex: -1 });
      node.addEventListener("click", () => this.choose(tile.entry));
    }
    tile.update = (current) => {
      tile.entry = current;
      node.dataset.name = current.name;
      setText(text, visible(current.name));
      setText(size, localText(current));
      const kind = { directory: "directory", symlink: "symbolic link" }[current.kind];
      const label = [visible(current.name), kind, localText(current)].filter(Boolean).join(", ");
      if (node.title !== label) node.title = label;
      if (isLink) setAttribute(node, "aria-label", label);
      fill.style.height = `${localShare(current) * 100}%`;
    };
    return tile;
  }

  /** Shows the entries of a directory, or a sentence instead. */
  update(usage, message = null) {
    const hadFocus = this.container.contains(document.activeElement);
    this.entries = (usage?.children ?? []).map((child) => ({ ...child }));
    if (usage?.others?.count > 0) {
      const { count, local, size } = usage.others;
      this.entries.push({ name: `${count} smaller items`, kind: "others", content: "partial", local, size });
    }
    const total = this.entries.reduce((sum, entry) => sum + entry.size, 0);
    const least = Math.max(total * Math.min(smallestShare, enlargedShare / this.entries.length), 1);
    for (const entry of this.entries) entry.weight = Math.max(entry.size, least);
    this.entries.sort((one, other) => other.weight - one.weight);
    const text = message ?? (usage && !this.entries.length ? "Nothing in this directory is known yet." : null);
    setShown(this.message, Boolean(text));
    setText(this.message, text ?? "");
    setShown(this.container, this.entries.length > 0);
    this.tiles.update(this.entries);
    if (hadFocus && this.container.hidden) this.message.focus({ preventScroll: true });
    this.draw();
    const nodes = this.container.querySelectorAll("button");
    if (![...nodes].some((node) => node.tabIndex === 0)) this.setTabStop(nodes[0]);
  }

  select(path) {
    this.selected = path;
    for (const { node, entry } of this.tiles.entries.values()) {
      if (entry.kind === "file" || entry.kind === "symlink") setAttribute(node, "aria-pressed", entry.path === path);
    }
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.container;
    if (!this.entries.length || !width || !height) return;
    const rectangles = squarify(this.entries.map((entry) => entry.weight), width, height);
    const tiles = [...this.tiles.entries.values()];
    const byEntry = new Map(tiles.map((tile) => [tile.entry, tile]));
    this.entries.forEach((entry, index) => {
      const { node, name, size } = byEntry.get(entry);
      const { x, y, width: across, height: down } = rectangles[index];
      const place = { left: x + 1, top: y + 1, width: Math.max(across - 2, 1), height: Math.max(down - 2, 1) };
      for (const [property, value] of Object.entries(place)) node.style[property] = `${value.toFixed(1)}px`;
      setShown(name, across > 40 && down > 24);
      setShown(size, across > 84 && down > 46);
    });
    this.select(this.selected);
  }
}
