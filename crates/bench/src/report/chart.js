"use strict";
// Draws the charts from the JSON in #result: one SVG each, no library. The cursor is shared by all charts.
(() => {
  const result = JSON.parse(document.getElementById("result").textContent);
  const intervals = result.intervals;
  const host = document.getElementById("charts");
  const WIDTH = 590, HEIGHT = 216, LEFT = 52, RIGHT = 10, TOP = 8, BOTTOM = 34;
  const inner = { width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
  const charts = [];

  const svg = (name, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const html = (name, className, parent, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };

  // 0, 1, 1.5 k, 12.3 k, 4.2 M: at most three digits that mean something.
  const number = (value, of = value) => {
    if (value === 0) return "0";
    for (const [from, unit, name] of [[1e9, 1e9, " G"], [1e6, 1e6, " M"], [1e4, 1e3, " k"]]) {
      if (of >= from) return trim(value / unit, of / unit >= 100 ? 0 : 1) + name;
    }
    return trim(value, of >= 100 ? 0 : of >= 10 ? 1 : of >= 1 ? 2 : 3);
  };
  const trim = (value, digits) => {
    const text = value.toFixed(digits);
    return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace(/\B(?=(\d{3})+$)/, " ");
  };
  const seconds = value => trim(value, value < 10 && value % 1 ? 1 : 0) + " s";

  // Round steps, about `count` of them.
  const ticks = (max, count) => {
    const raw = max / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw * 0.999);
    const out = [];
    for (let value = 0; value <= max + step * 1e-6; value += step) out.push(value);
    return out;
  };

  const last = intervals.length ? intervals[intervals.length - 1].at_s : 1;
  const x = at => LEFT + at / last * inner.width;
  const middle = i => intervals[i].at_s - intervals[i].length_s / 2;

  // `series`: [{ name, color, value: interval => number }]; options: unit, stacked, area, limit.
  const chart = (title, unit, series, options = {}) => {
    series = series.map(s => ({ ...s, values: intervals.map(s.value) }));
    if (options.stacked) series = series.filter(s => s.values.some(v => v > 0));
    const card = html("div", "card chart", host);
    const head = html("div", "head", card);
    html("h2", "", head, title).append(Object.assign(html("span", "unit"), { textContent: unit }));
    const at = html("span", "at", head, "");
    const legend = html("div", "legend", card);
    const entries = series.map(s => {
      const entry = html("span", "", legend);
      entry.style.setProperty("--series", `var(--c${s.color})`);
      html("i", "", entry);
      entry.append(s.name + " ");
      return html("b", "", entry, "");
    });
    const plot = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} (${unit}) over time` }, card);

    const sums = intervals.map(() => 0);
    for (const s of series) {
      s.low = options.stacked ? sums.slice() : sums.map(() => 0);
      s.high = s.values.map((value, i) => value + s.low[i]);
      if (options.stacked) s.high.forEach((value, i) => { sums[i] = value; });
    }
    const limit = options.limit && options.limit.value;
    const highest = Math.max(...series.flatMap(s => s.high), 0);
    const showLimit = limit && highest > limit * 0.3;
    const top = Math.max(highest * 1.05, showLimit ? limit * 1.12 : 0) || 1;
    const scale = ticks(top, 5);
    const y = value => TOP + inner.height * (1 - value / top);

    for (const value of scale) {
      svg("line", { class: value === 0 ? "base" : "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }, plot);
      svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, plot, number(value, scale[scale.length - 1]));
    }
    const times = ticks(last, 6);
    for (const value of times) {
      svg("text", { x: x(value), y: HEIGHT - 16, "text-anchor": value === 0 ? "start" : x(value) > WIDTH - 24 ? "end" : "middle" }, plot, trim(value, 2));
    }
    svg("text", { x: LEFT + inner.width / 2, y: HEIGHT - 1, "text-anchor": "middle" }, plot, "seconds since the start");

    if (!series.length || intervals.length < 2) {
      const why = intervals.length < 2 ? "too few intervals for a chart" : "nothing in this run";
      svg("text", { class: "empty", x: LEFT + inner.width / 2, y: TOP + inner.height / 2, "text-anchor": "middle" }, plot, why);
      return;
    }
    const points = list => list.map((value, i) => `${x(middle(i)).toFixed(1)},${y(value).toFixed(1)}`);
    for (const s of series) {
      const group = svg("g", { style: `--series: var(--c${s.color})` }, plot);
      if (options.stacked || options.area) {
        const path = `M${points(s.high).join("L")}L${points(s.low).reverse().join("L")}Z`;
        svg("path", { class: options.stacked ? "stack" : "area", d: path }, group);
      }
      if (!options.stacked) svg("path", { class: "line", d: `M${points(s.high).join("L")}` }, group);
    }
    if (showLimit) {
      svg("line", { class: "limit", x1: LEFT, x2: WIDTH - RIGHT, y1: y(limit), y2: y(limit) }, plot);
      svg("text", { x: WIDTH - RIGHT, y: y(limit) - 6, "text-anchor": "end" }, plot, options.limit.name);
    }
    const line = svg("line", { class: "cursor", y1: TOP, y2: TOP + inner.height }, plot);
    const dots = options.stacked ? [] : series.map(s => svg("circle", { class: "dot", r: 4, style: `--series: var(--c${s.color})` }, plot));

    charts.push(index => {
      const shown = index === null ? "hidden" : "visible";
      line.style.visibility = shown;
      dots.forEach(dot => { dot.style.visibility = shown; });
      at.textContent = index === null ? "" : "at " + seconds(intervals[index].at_s);
      series.forEach((s, n) => {
        entries[n].textContent = index === null ? "" : number(s.values[index]);
        if (index !== null && dots[n]) {
          dots[n].setAttribute("cx", x(middle(index)));
          dots[n].setAttribute("cy", y(s.high[index]));
        }
      });
      if (index !== null) {
        line.setAttribute("x1", x(middle(index)));
        line.setAttribute("x2", x(middle(index)));
      }
    });
    const show = event => {
      const box = plot.getBoundingClientRect();
      const at_s = ((event.clientX - box.left) / box.width * WIDTH - LEFT) / inner.width * last;
      let nearest = 0;
      intervals.forEach((_, i) => { if (Math.abs(middle(i) - at_s) < Math.abs(middle(nearest) - at_s)) nearest = i; });
      charts.forEach(draw => draw(nearest));
    };
    plot.addEventListener("pointermove", show);
    plot.addEventListener("pointerdown", show);
    plot.addEventListener("pointerleave", () => charts.forEach(draw => draw(null)));
  };

  const MIB = 1 << 20;
  const size = text => Number(text) || 0;
  const pageBytes = size(result.config.page_size) || 16384;
  const perSecond = pick => i => pick(i) / i.length_s;

  chart("Throughput", "transactions per second", [{ name: "all kinds", color: 1, value: i => i.tps }], { area: true });
  chart("Latency", "milliseconds", [
    { name: "median", color: 3, value: i => i.latency_us.p50 / 1000 },
    { name: "95 %", color: 1, value: i => i.latency_us.p95 / 1000 },
    { name: "99 %", color: 2, value: i => i.latency_us.p99 / 1000 },
  ]);
  chart("Buffer pool", "pages", [
    { name: "free", color: 3, value: i => i.pool_pages_free },
    { name: "dirty", color: 2, value: i => i.pool_pages_dirty },
    { name: "holding data", color: 1, value: i => i.pool_pages_data },
  ], { limit: { value: size(result.config.buffer_pool_size) / pageBytes, name: "pool size" } });
  chart("Checkpoint age", "MiB of redo since the last checkpoint", [
    { name: "age", color: 4, value: i => i.checkpoint_age_bytes / MIB },
  ], { area: true, limit: { value: size(result.config.log_file_size) / MIB, name: "log size" } });
  chart("Pages flushed by kind", "pages per second", [
    { name: "flush list", color: 1, value: perSecond(i => i.pages.flushed_flush_list) },
    { name: "LRU list", color: 2, value: perSecond(i => i.pages.flushed_lru_list) },
    { name: "single page", color: 5, value: perSecond(i => i.pages.flushed_single_page) },
  ], { stacked: true });
  const placements = [["redo", "redo"], ["doublewrite", "doublewrite"], ["index_leaf", "index leaves"], ["index_inner", "inner pages"], ["undo", "undo"], ["change_buffer", "change buffer"], ["other", "other"]];
  const colors = [1, 2, 3, 7, 4, 5, 6];
  chart("Bytes written by placement", "MiB per second", placements.map(([key, name], n) => (
    { name, color: colors[n], value: perSecond(i => (i.bytes_written[key] || 0) / MIB) }
  )), { stacked: true });
})();
