// Bytes per second, from counters that are read once a second.
import {
  KeyedList, bar, bytes, element, isolated, lastName, rate, setAttribute, setShown, setText, visible,
} from "./elements.js";

const span = 300;
const shownTransfers = 30;

function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

/** The smallest of 1, 2 and 5 times a power of ten that is not below the value. */
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((limit) => limit >= value * 0.9999);
}

/** The chart of the last five minutes. */
export class TrafficChart {
  constructor(container, received, sent) {
    Object.assign(this, { container, received, sent, samples: [], counters: new Map(), daemon: null, time: null });
    this.svg = shape("svg", { role: "img" });
    this.grid = shape("g", { class: "grid" });
    this.area = shape("path", { class: "area" });
    this.lines = { received: shape("path", { class: "line received" }), sent: shape("path", { class: "line sent" }) };
    this.svg.append(this.grid, this.area, this.lines.received, this.lines.sent);
    container.append(this.svg);
    new ResizeObserver(() => this.draw()).observe(container);
  }

  /** Takes the counters of a status. They start at 0 with the daemon, and with a mount. */
  add(status) {
    const now = performance.now() / 1000;
    const elapsed = this.time === null ? 0 : now - this.time;
    const daemon = `${status.daemon?.worker} ${status.daemon?.startedAt}`;
    if (daemon !== this.daemon) this.counters.clear();
    const sums = { received: 0, sent: 0 };
    const counters = new Map();
    for (const { name, received = 0, sent = 0 } of status.domains) {
      const last = this.counters.get(name);
      counters.set(name, { received, sent });
      if (!last) continue;
      sums.received += Math.max(received - last.received, 0);
      sums.sent += Math.max(sent - last.sent, 0);
    }
    Object.assign(this, { counters, daemon, time: now });
    if (elapsed > 0) {
      this.samples.push({ time: now, received: sums.received / elapsed, sent: sums.sent / elapsed });
      this.samples = this.samples.filter((sample) => sample.time > now - span - 5);
    }
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.container;
    const recent = this.samples.slice(-3);
    const average = (series) => recent.reduce((sum, sample) => sum + sample[series], 0) / Math.max(recent.length, 1);
    const last = { received: average("received"), sent: average("sent") };
    setText(this.received, rate(last.received));
    setText(this.sent, rate(last.sent));
    setAttribute(this.svg, "aria-label",
      `The last five minutes. Now ${rate(last.received)} received, ${rate(last.sent)} sent.`);
    if (!width || !height) return;
    const [top, bottom] = [16, height - 18];
    const limit = roundedUp(Math.max(10_000, ...this.samples.flatMap((sample) => [sample.received, sample.sent])));
    const x = (time) => width * (1 - ((this.time ?? 0) - time) / span);
    const y = (value) => bottom - (value / limit) * (bottom - top);
    setAttribute(this.svg, "viewBox", `0 0 ${width} ${height}`);

    const key = `${width} ${height} ${limit}`;
    if (this.gridKey !== key) {
      this.gridKey = key;
      const marks = [0, limit / 2, limit].map((value) =>
        shape("line", { x1: 0, x2: width, y1: y(value).toFixed(1), y2: y(value).toFixed(1) }));
      const labels = [limit, limit / 2].map((value) => shape("text", { x: 0, y: (y(value) - 4).toFixed(1) }, rate(value)));
      const times = [["5 min ago", 0, "start"], ["2.5 min ago", width / 2, "middle"], ["now", width, "end"]].map(
        ([text, at, anchor]) => shape("text", { x: at, y: height - 4, "text-anchor": anchor }, text));
      this.grid.replaceChildren(...marks, ...labels, ...times);
    }
    for (const series of ["received", "sent"]) {
      const points = this.samples.map((sample) => `${x(sample.time).toFixed(1)} ${y(sample[series]).toFixed(1)}`);
      this.lines[series].setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
      if (series === "received") {
        const begin = this.samples.length ? x(this.samples[0].time).toFixed(1) : 0;
        this.area.setAttribute("d", points.length > 1 ? `M${begin} ${bottom}L${points.join("L")}L${width} ${bottom}Z` : "");
      }
    }
  }
}

/** The rate of a transfer over the last seconds. */
class RateMeter {
  samples = [];

  add(done) {
    const now = performance.now() / 1000;
    if (done < (this.samples.at(-1)?.done ?? 0)) this.samples = [];
    this.samples.push({ now, done });
    while (this.samples.length > 2 && this.samples[0].now < now - 5) this.samples.shift();
    const first = this.samples[0];
    return now > first.now ? (done - first.done) / (now - first.now) : null;
  }
}

/** The list of transfers under way. */
export class TransferList {
  constructor(container, none, more) {
    Object.assign(this, { none, more });
    this.list = new KeyedList(container, (transfer) => JSON.stringify([transfer.domain, transfer.direction, transfer.path]),
      (transfer) => {
        const isDownload = transfer.direction === "download";
        const name = isolated("name");
        const place = isolated("path muted");
        const [amount, speed] = [element("span", { className: "amount muted" }), element("span", { className: "speed muted" })];
        const progress = bar("progressbar", visible(lastName(transfer.path)));
        const direction = element("span", { className: "direction" }, isDownload ? "↓" : "↑");
        direction.setAttribute("aria-label", isDownload ? "Download" : "Upload");
        direction.setAttribute("role", "img");
        const node = element("li", { className: `transfer ${isDownload ? "download" : "upload"}` },
          element("div", { className: "line" }, direction, name, speed), progress.node,
          element("div", { className: "line" }, place, amount));
        const meter = new RateMeter();
        return {
          node,
          update({ path, done, total, domain }) {
            const bytesPerSecond = meter.add(done);
            const text = total > 0 ? `${bytes(done)} of ${bytes(total)}` : bytes(done);
            setText(name, visible(lastName(path)));
            setText(place, visible(path === lastName(path) ? domain : path));
            setText(amount, text);
            setText(speed, bytesPerSecond === null ? "" : rate(bytesPerSecond));
            progress.update(total > 0 ? done / total : 0, text);
          },
        };
      });
  }

  update(domains) {
    const transfers = domains.flatMap((domain) => domain.transfers.map((transfer) => ({ ...transfer, domain: domain.name })));
    this.list.update(transfers.slice(0, shownTransfers));
    setShown(this.none, !transfers.length);
    setShown(this.more, transfers.length > shownTransfers);
    setText(this.more, `${transfers.length - shownTransfers} more`);
  }
}
