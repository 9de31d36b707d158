// The page of `yonder dashboard`: it asks for the state once a second, and changes the nodes that differ.
import {
  KeyedList, bar, bytes, count, duration, element, isBusy, isolated, lastName, number, secondsUntil, setAttribute, setBusy,
  setShown, setText, visible,
} from "./elements.js";
import { Expired, Refused, Unreachable, isExpired, post, reading, request } from "./requests.js";
import { TrafficChart, TransferList } from "./traffic.js";
import { Treemap, localText } from "./treemap.js";

const byId = (id) => document.getElementById(id);

// MARK: Banner

const banner = byId("banner");

/** Shows one sentence above everything; null removes it. */
function showBanner(text, kind = "bad") {
  setText(banner, text ?? "");
  const name = text ? `banner ${kind}` : "";
  if (banner.className !== name) banner.className = name;
  // What is below is old, and stays readable.
  byId("main").classList.toggle("stale", Boolean(text));
}

function showTrouble(error) {
  if (error instanceof Expired || isExpired) showBanner("This page has expired. Run yonder dashboard again.");
  else if (error instanceof Unreachable) {
    showBanner(
      "The program yonder dashboard has ended: run it again. "
        + "This page shows the last known state, and tries again every 2 seconds.");
  } else if (error instanceof Refused) showBanner(visible(error.message), "warn");
  else {
    console.error(error);
    showBanner(`This page has failed: ${error.message}`);
  }
}

// MARK: Actions

/** Results of actions, by the place that they concern: `{ text, isError }`. */
const notes = new Map();
/** Actions under way, by the same keys. */
const running = new Set();

/** Calls the server for a button, shows the failure beside it, and then reads everything again. */
async function act(place, path, body, texts = {}) {
  if (running.has(place) || isExpired) return;
  running.add(place);
  notes.set(place, { text: texts.during ?? "" });
  setBusyActions(1);
  showPlaces();
  try {
    await post(path, body);
    const done = { text: texts.after ?? "" };
    notes.set(place, done);
    setTimeout(() => {
      if (notes.get(place) !== done) return;
      notes.delete(place);
      showPlaces();
    }, 10_000);
  } catch (error) {
    if (error instanceof Refused) notes.set(place, { text: visible(error.message), isError: true });
    else if (error instanceof Expired) showTrouble(error);
    else notes.set(place, { text: "The dashboard did not answer.", isError: true });
  }
  running.delete(place);
  showPlaces();
  await Promise.all([readStatus(), readLists(), readUsage()].map((read) => read.catch(() => {})));
  setBusyActions(-1);
}

/** `data-busy` tells a test that an action, or the reading after it, is under way. */
function setBusyActions(change) {
  document.body.dataset.busy = Number(document.body.dataset.busy ?? 0) + change;
}

function note() {
  const node = element("p", { className: "note", role: "status" });
  return {
    node,
    update(place) {
      const { text = "", isError = false } = notes.get(place) ?? {};
      setText(node, text);
      node.classList.toggle("bad", isError);
      setShown(node, text !== "");
    },
  };
}

function button(text, action, className = "") {
  const node = element("button", { type: "button", className }, text);
  node.addEventListener("click", (event) => {
    if (!isBusy(node)) action(event);
  });
  return node;
}

// MARK: Domains

const connections = {
  online: { text: "Online", explanation: "" },
  offline: { text: "Offline", explanation: "Changes wait here until the remote answers." },
  unauthenticated: { text: "Not signed in", explanation: "Changes wait here until the remote accepts the credentials." },
  paused: { text: "Paused", explanation: "Nothing is sent or downloaded meanwhile." },
};

const warningList = (container) =>
  new KeyedList(container, (text) => text, () => {
    const node = element("li");
    return { node, update: (text) => setText(node, visible(text)) };
  });

const cards = new KeyedList(byId("domains"), (domain) => domain.name, (first) => {
  const place = `domain ${first.name}`;
  const [name, source, mountpoint] = [isolated("name"), isolated(), isolated()];
  const connection = element("span", { className: "connection" });
  const explanation = element("p", { className: "explanation" });
  const local = element("p", { className: "local" });
  const quota = bar("meter", "Local content, of its limit");
  const numbers = ["Pending", "Failed", "Local files", "Known items"].map((label) => {
    const value = element("dd");
    const detail = element("span", { className: "detail muted" });
    return { value, detail, node: element("div", {}, element("dt", {}, label), value, detail) };
  });
  const reimport = element("p", { className: "muted" });
  const reimportBar = bar("progressbar", "Reimport");
  const warnings = element("ul", { className: "warnings", "aria-label": "Warnings" });
  const warningItems = warningList(warnings);
  let domain = first;
  const pause = button("Pause", () =>
    act(place, domain.connection === "paused" ? "/api/resume" : "/api/pause", { domain: domain.name }));
  const retry = button("Retry", () =>
    act(place, "/api/retry", { domain: domain.name }, { after: "Yonder retries the changes now." }));
  const message = note();
  const node = element("article", { className: "panel card", "aria-label": visible(first.name) },
    element("div", { className: "title" }, element("h3", {}, name), connection),
    element("p", { className: "muted route" }, "on ", mountpoint), element("p", { className: "muted route" }, "from ", source),
    explanation, local, quota.node,
    element("dl", {}, ...numbers.map((entry) => entry.node)),
    reimport, reimportBar.node, warnings,
    element("div", { className: "buttons" }, pause, retry), message.node);
  return {
    node,
    place() {
      setBusy(pause, running.has(place));
      setBusy(retry, running.has(place));
      message.update(place);
    },
    update(current) {
      domain = current;
      const { text, explanation: sentence } = connections[domain.connection] ?? { text: domain.connection, explanation: "" };
      setText(name, visible(domain.name));
      setText(source, visible(domain.source));
      setText(mountpoint, visible(domain.mountpoint));
      setText(connection, text);
      setAttribute(connection, "data-connection", domain.connection);
      const reason = domain.reason ? visible(domain.reason).replace(/([^.!?])$/, "$1.") : "";
      setText(explanation, [reason, sentence].filter(Boolean).join(" "));
      setShown(explanation, explanation.textContent !== "");

      const { local: used, limit } = domain.bytes;
      const amount = limit === null || limit === undefined ? bytes(used) : `${bytes(used)} of ${bytes(limit)}`;
      setText(local, `${amount} on this machine`);
      setShown(quota.node, limit > 0);
      quota.update(used / limit, amount);
      quota.node.classList.toggle("full", used > limit * 0.95);

      const [pending, failed, files, known] = numbers;
      setText(pending.value, number(domain.pending.items));
      setText(pending.detail, domain.pending.bytes > 0 ? bytes(domain.pending.bytes) : "");
      setText(failed.value, number(domain.failed));
      failed.node.classList.toggle("bad", domain.failed > 0);
      setText(files.value, number(domain.items.materializedFiles));
      setText(known.value, number(domain.items.known));

      const { done = 0, total = 0, isCounting = false } = domain.reimport ?? {};
      setShown(reimport, Boolean(domain.reimport));
      setShown(reimportBar.node, Boolean(domain.reimport) && !isCounting);
      const progress = isCounting ? `${number(done)}, still counting` : `${number(done)} of ${count(total, "item")}`;
      setText(reimport, `Reimport: ${progress}`);
      reimportBar.update(done / total, progress);

      warningItems.update(domain.warnings ?? []);
      setShown(warnings, Boolean(domain.warnings?.length));

      const isPaused = domain.connection === "paused";
      setText(pause, isPaused ? "Resume" : "Pause");
      setAttribute(pause, "aria-label", `${pause.textContent} ${visible(domain.name)}`);
      setAttribute(retry, "aria-label", `Retry ${visible(domain.name)}`);
      const canRetry = domain.failed > 0 || domain.pending.items > 0;
      // A hidden button loses the focus.
      if (!canRetry && document.activeElement === retry) pause.focus({ preventScroll: true });
      setShown(retry, canRetry);
      this.place();
    },
  };
});

const daemonWarnings = warningList(byId("daemon-warnings"));

const readers = new KeyedList(byId("readers"), (reader) => String(reader.process), () => {
  const name = isolated("name");
  const process = element("span", { className: "muted" });
  const amount = element("td", { className: "number" });
  const node = element("tr", {}, element("td", {}, name, " ", process), amount);
  return {
    node,
    update(reader) {
      setText(name, visible(reader.name));
      setText(process, `pid ${reader.process}`);
      const limit = reader.limit === null || reader.limit === undefined ? "" : ` of ${bytes(reader.limit)}`;
      setText(amount, bytes(reader.fetched) + limit + (reader.isRefused ? ", refused" : ""));
      node.classList.toggle("bad", Boolean(reader.isRefused));
    },
  };
});

// MARK: Status

let status = null;
const chart = new TrafficChart(byId("chart"), byId("received"), byId("sent"));
const transfers = new TransferList(byId("transfers"), byId("no-transfers"), byId("more-transfers"));

function showStatus() {
  const { daemon = {}, domains } = status;
  const age = secondsUntil(daemon.startedAt);
  setText(byId("daemon"), [
    status.version ? `Version ${visible(status.version)}` : "",
    age === null ? "" : `daemon started ${duration(-age)} ago`,
    daemon.restarts > 0 ? count(daemon.restarts, "restart") : "",
  ].filter(Boolean).join(" · "));
  daemonWarnings.update(daemon.warnings ?? []);
  setShown(byId("daemon-warnings"), Boolean(daemon.warnings?.length));
  const hasDomains = domains.length > 0;
  setShown(byId("empty"), !hasDomains);
  setShown(byId("domains-section"), hasDomains);
  setShown(byId("columns"), hasDomains);
  cards.update(domains);
  transfers.update(domains);
  const most = [...(status.readers ?? [])].sort((one, other) => other.fetched - one.fetched).slice(0, 10);
  readers.update(most);
  setShown(byId("readers-section"), most.length > 0);
  showDomainChoice(domains);
}

async function readStatus() {
  const { isNewest } = reading("status");
  try {
    const answer = await request("/api/status");
    if (!isNewest()) return;
    status = answer;
    chart.add(status);
    showStatus();
    showBanner(null);
  } catch (error) {
    showTrouble(error);
    throw error;
  }
}

// MARK: Conflicts

/** The conflict and the version whose button was clicked once: a second click confirms. */
let confirming = null;

const conflicts = new KeyedList(byId("conflicts"), (conflict) => conflict.path, (conflict) => {
  const place = `conflict ${conflict.path}`;
  const message = note();
  const versions = ["copy", "original"].map((keep) => {
    const isCopy = keep === "copy";
    const text = isCopy ? "Keep this version" : "Keep the other version";
    const id = `conflict-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
    const quoted = (name) => element("q", {}, element("bdi", {}, visible(lastName(name))));
    const explanation = element("p", { className: "explanation", id },
      ...(isCopy
        ? ["Gives this version the name ", quoted(conflict.original), ", and removes the version that has it now: to the trash, where the remote has one."]
        : ["Removes ", quoted(conflict.path), ", to the trash where the remote has one, and leaves the other version as it is."]));
    const isConfirming = () => confirming?.path === conflict.path && confirming.keep === keep;
    const choose = button(text, (event) => {
      // The second click of a double click is no confirmation.
      if (event.detail > 1) return;
      if (isConfirming()) {
        confirming = null;
        act(place, "/api/resolve", { path: conflict.path, original: conflict.original, keep });
      } else {
        confirming = { path: conflict.path, keep };
        showPlaces();
      }
    });
    choose.setAttribute("aria-describedby", id);
    const cancel = button("Cancel", () => {
      choose.focus();
      confirming = null;
      showPlaces();
    }, "quiet");
    const path = isCopy ? conflict.path : conflict.original;
    const node = element("div", { className: "version" },
      element("p", { className: "muted" }, isCopy ? "The version of this conflict copy" : "The version that has the name now"),
      element("p", {}, element("bdi", { className: "name" }, visible(lastName(path)))),
      explanation, element("div", { className: "buttons" }, choose, cancel));
    return {
      node,
      place() {
        setText(choose, isConfirming() ? `Yes, ${text[0].toLowerCase()}${text.slice(1)}` : text);
        choose.classList.toggle("danger", isConfirming());
        setBusy(choose, running.has(place));
        setShown(cancel, isConfirming());
      },
    };
  });
  const folder = conflict.path.slice(0, conflict.path.lastIndexOf("/"));
  const node = element("li", { className: "panel conflict" },
    element("p", { className: "muted" }, "In ", element("bdi", { className: "path" }, visible(folder))),
    element("div", { className: "versions" }, ...versions.map((version) => version.node)), message.node);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || confirming?.path !== conflict.path) return;
    if (document.activeElement?.classList.contains("quiet")) document.activeElement.previousSibling.focus();
    confirming = null;
    showPlaces();
  });
  return {
    node,
    place() {
      versions.forEach((version) => version.place());
      message.update(place);
    },
    update() {
      this.place();
    },
  };
});

// MARK: Pending changes

const fieldNames = {
  filename: "name", parentItemIdentifier: "directory", lastUsedDate: "last use", tagData: "tags", favoriteRank: "favourite",
  creationDate: "creation time", contentModificationDate: "modification time", fileSystemFlags: "flags",
  extendedAttributes: "extended attributes", permissions: "mode", ownership: "owner",
};

const mostRows = 20;

const failures = new KeyedList(byId("failures"), (item) => item.path, () => {
  const [name, path] = [isolated("name"), isolated("path muted")];
  const [message, details] = [element("p", { className: "message bad" }), element("p", { className: "muted" })];
  const node = element("li", { className: "failure" }, element("p", {}, name), message, details, path);
  return {
    node,
    update(item) {
      setText(name, visible(lastName(item.path)));
      setText(path, visible(item.path));
      setText(message, visible(item.error.message || item.error.code));
      const [age, wait] = [secondsUntil(item.since), secondsUntil(item.error.nextTry)];
      setText(details, [
        item.fields?.length ? `Changed: ${item.fields.map((field) => visible(fieldNames[field] ?? field)).join(", ")}` : "",
        age === null ? "" : `waits for ${duration(-age)}`,
        item.error.attempts > 0 ? count(item.error.attempts, "attempt") : "",
        wait === null ? "" : wait > 1 ? `next try in ${duration(wait)}` : "next try now",
      ].filter(Boolean).join(" · "));
    },
  };
});

const waiting = new KeyedList(byId("waiting"), (reason) => reason.message, () => {
  const node = element("li", { className: "reason" });
  return {
    node,
    update({ message, amount }) {
      setText(node, `${count(amount, "change")} ${amount === 1 ? "waits" : "wait"}: ${visible(message)}`);
    },
  };
});

async function readLists() {
  const { isNewest } = reading("lists");
  const [pending, copies] = await Promise.all([request("/api/pending"), request("/api/conflicts")]);
  if (!isNewest()) return;
  // An error without an attempt is a reason to wait, such as a remote that is unreachable, and many changes have the same.
  const failed = pending.items.filter((item) => item.error?.attempts > 0);
  const reasons = new Map();
  for (const { error } of pending.items) {
    if (error && !(error.attempts > 0)) reasons.set(error.message, (reasons.get(error.message) ?? 0) + 1);
  }
  failures.update(failed.slice(0, mostRows));
  waiting.update([...reasons].map(([message, amount]) => ({ message, amount })));
  setShown(byId("failures"), failed.length > 0);
  setShown(byId("waiting"), reasons.size > 0);
  setShown(byId("pending-section"), failed.length + reasons.size > 0);
  const rest = pending.count - pending.items.length + Math.max(failed.length - mostRows, 0);
  setShown(byId("more-pending"), rest > 0);
  setText(byId("more-pending"), `${count(rest, "more change")}: yonder pending lists all.`);

  if (confirming && !copies.some((copy) => copy.path === confirming.path)) confirming = null;
  conflicts.update(copies.slice(0, mostRows));
  setShown(byId("more-conflicts"), copies.length > mostRows);
  setText(byId("more-conflicts"), `${count(copies.length - mostRows, "more conflict")}: yonder conflicts lists all.`);
  setShown(byId("conflicts-section"), copies.length > 0);
}

/** Updates what depends on actions under way, and not on the server. */
function showPlaces() {
  for (const entry of [...cards.entries.values(), ...conflicts.entries.values()]) entry.place();
  showSelection();
}

// MARK: Local content

/** The directory to show, the file that is selected in it, and what was read last: `{ domain, path, usage, message }`. */
const view = { domain: null, path: null, selected: null, shown: null };

const choice = byId("usage-domain");
const domainOptions = new KeyedList(choice, (domain) => domain.name, (domain) => {
  const node = element("option", { value: domain.name });
  return { node, update: (current) => setText(node, visible(current.name)) };
});

function showDomainChoice(domains) {
  domainOptions.update(domains);
  setShown(byId("usage-choice"), domains.length > 1);
  const domain = domains.find((candidate) => candidate.name === view.domain?.name) ?? domains[0];
  if (!domain) Object.assign(view, { domain: null, path: null, shown: null });
  else if (domain.name !== view.domain?.name || domain.mountpoint !== view.domain?.mountpoint) open(domain, domain.mountpoint);
  if (domain && choice.value !== domain.name) choice.value = domain.name;
}

choice.addEventListener("change", () => {
  const domain = status?.domains.find((candidate) => candidate.name === choice.value);
  if (domain) open(domain, domain.mountpoint);
});

function open(domain, path) {
  Object.assign(view, { domain, path, selected: null });
  treemap.container.classList.add("loading");
  setBusyActions(1);
  readUsage().catch(() => {}).then(() => {
    treemap.container.classList.remove("loading");
    setBusyActions(-1);
  });
}

const treemap = new Treemap(byId("treemap"),
  (entry) => {
    if (entry.kind === "directory") return open(view.domain, entry.path);
    view.selected = view.selected === entry.path ? null : entry.path;
    showUsage();
  },
  () => {
    if (view.path.length > view.domain.mountpoint.length) open(view.domain, view.path.slice(0, view.path.lastIndexOf("/")));
  });

const breadcrumbs = new KeyedList(byId("breadcrumbs"), (crumb) => crumb.path, (first) => {
  const name = isolated("name");
  const go = element("button", { type: "button", className: "crumb" }, name);
  let crumb = first;
  go.addEventListener("click", () => open(view.domain, crumb.path));
  return {
    node: element("li", {}, go),
    update(current) {
      crumb = current;
      setText(name, visible(crumb.name));
      if (crumb.path === view.shown.path) go.setAttribute("aria-current", "page");
      else go.removeAttribute("aria-current");
    },
  };
});

function crumbs() {
  const { domain, path } = view.shown;
  const list = [{ name: domain.name, path: domain.mountpoint }];
  let at = domain.mountpoint;
  for (const name of path.slice(at.length).split("/").filter(Boolean)) {
    at = `${at}/${name}`;
    list.push({ name, path: at });
  }
  return list;
}

const selection = (() => {
  const [name, text] = [isolated("name"), element("p", { className: "muted" })];
  const message = note();
  let item = null;
  const download = button("Download", () =>
    act(`item ${item.path}`, "/api/download", { path: item.path }, { during: "Downloading …", after: "Downloaded." }));
  const evict = button("Free up space", () =>
    act(`item ${item.path}`, "/api/evict", { path: item.path },
      { during: "Freeing up space …", after: "Freed. Content that is open, pinned or pending stays." }));
  byId("selection").append(
    element("div", { className: "about" }, element("p", {}, name), text),
    element("div", { className: "buttons" }, download, evict), message.node);
  return (current) => {
    item = current;
    setShown(byId("selection"), Boolean(item));
    if (!item) return;
    setText(name, visible(item.name));
    const kind = { directory: "Directory", symlink: "Symbolic link" }[item.kind] ?? "File";
    setText(text, `${kind}, ${localText(item)}`);
    const place = `item ${item.path}`;
    setBusy(download, running.has(place));
    setBusy(evict, running.has(place));
    message.update(place);
  };
})();

function showSelection() {
  const usage = view.shown?.usage;
  const child = usage?.children.find((candidate) => candidate.path === view.selected);
  selection(child || (usage && { ...usage, name: crumbs().at(-1).name, kind: "directory", content: "partial" }));
}

function showUsage() {
  const list = crumbs();
  breadcrumbs.update(list);
  treemap.update(view.shown.usage, view.shown.message);
  treemap.select(view.selected);
  setAttribute(treemap.container, "aria-label", `Contents of ${visible(list.at(-1).name)}`);
  showSelection();
}

async function readUsage() {
  const { domain, path } = view;
  if (!domain) return;
  const { isNewest } = reading("usage");
  let [usage, message] = [null, null];
  try {
    usage = { ...(await request(`/api/usage?path=${encodeURIComponent(path)}`)), path };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    message = visible(error.message);
  }
  // The user may have gone to another directory since.
  if (!isNewest() || view.domain !== domain || view.path !== path) return;
  view.shown = { domain, path, usage, message };
  if (view.selected && !usage?.children.some((child) => child.path === view.selected)) view.selected = null;
  showUsage();
}

// MARK: Polling

const pauseFor = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Reads again and again. A slow answer makes the pause longer, so that the page does not keep the daemon busy. */
async function poll(read, seconds, hasBanner = false) {
  setBusyActions(1);
  for (let isFirst = true; !isExpired; isFirst = false) {
    const begin = performance.now();
    let wait = seconds;
    try {
      await read();
    } catch (error) {
      wait = Math.max(seconds, 2);
      if (!hasBanner && !(error instanceof Refused || error instanceof Unreachable)) showTrouble(error);
    }
    if (isFirst) setBusyActions(-1);
    await pauseFor(Math.max(wait, (5 * (performance.now() - begin)) / 1000));
  }
}

// The token of the address has become a cookie, and need not stay in the history.
if (location.search) history.replaceState(null, "", location.pathname);
poll(readStatus, 1, true);
poll(readLists, 3);
poll(readUsage, 3);
