// Helpers for nodes and for the texts in them. Names from a remote may hold anything: they become text, never markup.

/** Makes an element. A property is set on the node, an attribute if its name has a hyphen or is `role`. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** A name or a path, whose writing direction does not affect the text around it. */
export const isolated = (className = "") => element("bdi", { className });

/** Sets the text of a node, and leaves the node alone if it has that text: a change ends a selection by the user. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setShown(node, isShown) {
  if (node.hidden === isShown) node.hidden = !isShown;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows a button as busy. It is not `disabled`, because a disabled button loses the focus. */
export function setBusy(button, isBusy) {
  if (isBusy) setAttribute(button, "aria-disabled", "true");
  else button.removeAttribute("aria-disabled");
}

export const isBusy = (button) => button.getAttribute("aria-disabled") === "true";

/** A bar that is filled by a fraction. */
export function bar(role, label) {
  const fill = element("div", { className: "fill" });
  const range = { "aria-valuemin": "0", "aria-valuemax": "100" };
  const node = element("div", { className: "bar", role, "aria-label": label, ...range }, fill);
  return {
    node,
    update(fraction, text) {
      const percent = Math.round(Math.min(Math.max(fraction || 0, 0), 1) * 1000) / 10;
      fill.style.width = `${percent}%`;
      setAttribute(node, "aria-valuenow", Math.round(percent));
      setAttribute(node, "aria-valuetext", text);
    },
  };
}

/** The children of a node, one per item, matched by key so that an update keeps nodes, focus and selection. */
export class KeyedList {
  /** `make` returns an object with a `node` and a method `update(item)`. */
  constructor(parent, key, make) {
    Object.assign(this, { parent, key, make, entries: new Map() });
  }

  update(items) {
    const focused = document.activeElement;
    const hadFocus = this.parent.contains(focused);
    const wanted = new Map();
    for (const item of items) {
      let key = this.key(item);
      while (wanted.has(key)) key += "\0";
      wanted.set(key, item);
    }
    for (const [key, entry] of this.entries) {
      if (wanted.has(key)) continue;
      entry.node.remove();
      this.entries.delete(key);
    }
    let next = this.parent.firstChild;
    for (const [key, item] of wanted) {
      let entry = this.entries.get(key);
      if (!entry) this.entries.set(key, (entry = this.make(item)));
      entry.update(item);
      if (entry.node === next) next = next.nextSibling;
      else this.parent.insertBefore(entry.node, next);
    }
    if (!hadFocus || document.activeElement === focused) return;
    // A node that is moved or removed loses the focus.
    if (focused.isConnected) focused.focus({ preventScroll: true });
    else {
      this.parent.tabIndex = -1;
      this.parent.focus({ preventScroll: true });
    }
  }
}

/** Makes control characters visible, which a browser would drop or show as white space. */
export function visible(text) {
  return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd";
  });
}

export const lastName = (path) => path.slice(path.lastIndexOf("/") + 1) || path;

const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** In the units of the command line: 1234567 is "1.2 MiB". */
export function bytes(count) {
  let value = Math.max(Number(count) || 0, 0);
  if (value < 1024) return `${Math.round(value)}\u00a0${Math.round(value) === 1 ? "byte" : "bytes"}`;
  let unit = -1;
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 99.95 ? value.toFixed(1) : value.toFixed(0)}\u00a0${units[unit]}`;
}

export const rate = (bytesPerSecond) => `${bytes(bytesPerSecond)}/s`;

const grouped = new Intl.NumberFormat("en-US");

export const number = (value) => grouped.format(Number(value) || 0);

export const count = (value, one, many = `${one}s`) => `${number(value)} ${Number(value) === 1 ? one : many}`;

/** A number of seconds in the largest unit that fits: "5 minutes". */
export function duration(seconds) {
  const whole = Math.max(Math.round(seconds), 0);
  if (whole < 60) return count(whole, "second");
  if (whole < 3600) return count(Math.floor(whole / 60), "minute");
  if (whole < 86400) return count(Math.floor(whole / 3600), "hour");
  return count(Math.floor(whole / 86400), "day");
}

/** Seconds from now until an RFC 3339 time; null if it is none. */
export function secondsUntil(time) {
  const parsed = Date.parse(time ?? "");
  return Number.isNaN(parsed) ? null : (parsed - Date.now()) / 1000;
}
