"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROWS = 25, LONG = 100;
  const byId = (id) => document.getElementById(id);
  const load = (id) => JSON.parse(byId(id).textContent);
  let pool = null;

  // Text becomes text nodes and attribute values, never markup.
  function make(space, name, attributes, children) {
    const node = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(key, "");
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
    }
    for (const child of [].concat(children === undefined || children === null ? [] : children)) node.append(child);
    return node;
  }
  const el = (name, attributes, children) => make(null, name, attributes, children);
  const sv = (name, attributes, children) => make(SVG, name, attributes, children);
  // Marks that turn the direction of text would rewrite the words beside a label.
  const plain = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  const say = (text) => { byId("said").textContent = text; };

  // Numbers.
  function digits(within) { return within >= 10 || within === 0 ? 0 : within >= 1 ? 1 : Math.min(6, 1 - Math.floor(Math.log10(within))); }
  function shown(value, places) { return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }).replace("-", "−"); }
  function figure(value) {
    if (!value) return "0";
    const places = 1 - Math.floor(Math.log10(Math.abs(value)));
    return (Math.round(value * 10 ** places) / 10 ** places).toLocaleString("en", { maximumFractionDigits: Math.max(0, places) });
  }
  // A range that the truth is within: rounded up.
  function reach(value) {
    const places = 1 - Math.floor(Math.log10(value));
    return (Math.ceil(value * 10 ** places - 1e-9) / 10 ** places).toLocaleString("en", { maximumFractionDigits: Math.max(0, places) });
  }
  function nice(low, high, count) {
    const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step) ticks.push(Math.abs(t) < step * 1e-6 ? 0 : t);
    return ticks;
  }
  const short = (text, most) => text.length <= most ? text : text.slice(0, Math.ceil((most - 1) / 2)) + "…" + text.slice(text.length - Math.floor((most - 1) / 2));

  // A table with functions that hide how it is stored.
  function opened(at) {
    const data = load("data-" + at);
    pool = pool || load("labels");
    const raw = data.labels.map((place) => pool[place]), lists = raw.map((list) => list.map(plain)), sizes = lists.map((list) => list.length);
    const steps = sizes.map((_, k) => sizes.slice(k + 1).reduce((a, b) => a * b, 1));
    const within = Array.isArray(data.within) ? (row) => data.within[row] : () => data.within;
    const code = data.codes ? (row, k) => data.codes[k][row] : (row, k) => Math.floor(row / steps[k]) % sizes[k];
    let middle = Array.isArray(data.within) ? data.within.slice().sort((a, b) => a - b)[data.within.length >> 1] || 0 : data.within;
    const whole = data.values.every(Number.isInteger);
    const places = whole ? 0 : digits(middle || 0);
    return { ...data, rawColumns: data.columns, columns: data.columns.map(plain), title: plain(data.title), at, lists, sizes, steps, within, code, product: !data.codes, places, count: data.values.length,
      label: (row, k) => lists[k][code(row, k)], raw: (row, k) => raw[k][code(row, k)],
      name: (row) => data.columns.map((column, k) => plain(column) + " " + lists[k][code(row, k)]).join(", "),
      text: (row) => shown(data.values[row], places) + (within(row) ? " ± " + reach(within(row)) : ", exact") };
  }

  // The list of counts: bars with the range of the truth, sorted, searched, downloaded.
  function counts(table, place) {
    let low = 0, high = 0;
    table.values.forEach((value, row) => { low = Math.min(low, value - table.within(row)); high = Math.max(high, value + table.within(row)); });
    if (low === high) high = low + 1;
    const x = (value) => ((value - low) / (high - low) * 1000).toFixed(1);
    const extra = table.unbiased ? ["unbiased"] : [];
    const heads = [...table.columns, table.word, "95 % within", ...extra];
    const keys = [...table.columns.map((_, k) => (row) => table.code(row, k)), (row) => table.values[row], (row) => table.within(row), (row) => table.unbiased[row]];
    let order = Array.from({ length: table.count }, (_, row) => row), most = table.count <= 40 ? 40 : ROWS, sorted = -1, up = true, words = "";
    const body = el("tbody"), more = el("button", { type: "button" }), status = el("span", { role: "status" });
    const search = el("input", { type: "search", autocomplete: "off", id: "search-" + table.at });
    const picked = () => {
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
      return wanted.length ? order.filter((row) => { const text = table.name(row).toLowerCase(); return wanted.every((word) => text.includes(word)); }) : order;
    };
    function bar(row) {
      const value = table.values[row], within = table.within(row), unit = { y1: 9, y2: 9 };
      const parts = [sv("rect", { class: "value", x: x(Math.min(0, value)), width: Math.max(1, x(Math.max(0, value)) - x(Math.min(0, value))), y: 3, height: 12 })];
      if (within) {
        parts.push(sv("line", { class: "whisker", x1: x(value - within), x2: x(value + within), ...unit }));
        for (const end of [value - within, value + within]) parts.push(sv("line", { class: "whisker", x1: x(end), x2: x(end), y1: 5, y2: 13 }));
      }
      if (low < 0) parts.push(sv("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: 18 }));
      return sv("svg", { viewBox: "0 0 1000 18", preserveAspectRatio: "none", "aria-hidden": "true" }, parts);
    }
    function line(row) {
      const unsure = table.within(row) && Math.abs(table.values[row]) <= table.within(row);
      const cells = table.columns.map((_, k) => { const text = table.label(row, k); return el("td", { title: text.length > LONG ? text : null }, short(text, LONG)); });
      cells.push(el("td", { class: "number" }, shown(table.values[row], table.places)), el("td", { class: "number" }, table.within(row) ? "± " + reach(table.within(row)) : "exact"));
      if (table.unbiased) cells.push(el("td", { class: "number" }, shown(table.unbiased[row], Math.max(1, table.places))));
      cells.push(el("td", {}, bar(row)));
      return el("tr", { class: unsure ? "unsure" : null }, cells);
    }
    function fill() {
      const rows = picked();
      body.replaceChildren(...rows.slice(0, most).map(line));
      more.hidden = rows.length <= most;
      more.textContent = "Show " + Math.min(rows.length - most, 500).toLocaleString("en") + " more";
      status.textContent = words ? rows.length.toLocaleString("en") + " of " + table.count.toLocaleString("en") + " rows" : "";
    }
    const columns = heads.map((head, k) => {
      const button = el("button", { type: "button", title: head.length > LONG / 2 ? head : null }, short(head, LONG / 2));
      const cell = el("th", { scope: "col", "aria-sort": "none", class: k >= table.columns.length ? "number" : null }, button);
      button.addEventListener("click", () => {
        up = sorted === k ? !up : k < table.columns.length;
        sorted = k;
        order.sort((a, b) => (keys[k](a) - keys[k](b)) * (up ? 1 : -1) || a - b);
        columns.forEach((other, at) => other.setAttribute("aria-sort", at === k ? (up ? "ascending" : "descending") : "none"));
        fill();
        say("Sorted by " + head + (up ? ", ascending" : ", descending"));
      });
      return cell;
    });
    search.addEventListener("input", () => { words = search.value; most = ROWS; fill(); });
    more.addEventListener("click", () => { most += 500; fill(); });
    const save = el("button", { type: "button", class: "download" }, "Download CSV");
    save.addEventListener("click", () => download(table));
    const tools = el("div", { class: "tools" }, [el("label", { for: search.id }, "Search"), search, save, status]);
    if (table.count < 8) tools.querySelectorAll("label, input").forEach((node) => { node.hidden = true; });
    const drawn = el("table", { class: "counts" }, [
      el("caption", { class: table.rows > table.count ? null : "unseen" }, table.title + (table.rows > table.count ? ": the " + table.count.toLocaleString("en") + " largest of " + table.rows.toLocaleString("en") + " counts; release.csv has all" : "")),
      el("thead", {}, el("tr", {}, [...columns, el("th", { scope: "col" }, scale(low, high))])), body]);
    place.append(tools, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Counts of " + table.title }, drawn), more);
    fill();
    table.showAll = () => { const kept = most; most = Math.max(most, 400); fill(); return () => { most = kept; fill(); }; };
  }

  function scale(low, high) {
    const text = (value) => Math.abs(value) >= 1e6 ? value / 1e6 + "m" : value.toLocaleString("en");
    const ticks = nice(low, high, 3), at = (value) => (value - low) / (high - low) * 100 + "%";
    return [el("span", { class: "unseen" }, "Bar"), sv("svg", { "aria-hidden": "true", height: 18 }, ticks.map((tick) => {
      const share = (tick - low) / (high - low);
      return sv("text", { class: tick ? "tick more" : "tick", x: at(tick), y: 14, "text-anchor": share < 0.06 ? "start" : share > 0.94 ? "end" : "middle" }, text(tick));
    }))];
  }

  function download(table) {
    // A label that a spreadsheet program would run as a formula is given a sign in front that makes it text.
    // Some split cells at semicolons, whatever the quotes say, so that one may begin behind each.
    const text = (label) => /^[+-]?[0-9]+(\.[0-9]+)?$/.test(label) ? label : label.replace(/(^|[;\t\r\n])(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])/g, "$1'");
    const quote = (label) => /[",;\t\n\r]/.test(text(label)) ? '"' + text(label).replaceAll('"', '""') + '"' : text(label);
    const lines = [[...table.rawColumns, table.word, "within_95", ...(table.unbiased ? ["unbiased"] : [])].map(quote).join(",")];
    for (let row = 0; row < table.count; row += 1) {
      lines.push([...table.columns.map((_, k) => quote(table.raw(row, k))), table.values[row], table.within(row), ...(table.unbiased ? [table.unbiased[row]] : [])].join(","));
    }
    const link = el("a", { href: URL.createObjectURL(new Blob(["\ufeff" + lines.join("\r\n") + "\r\n"], { type: "text/csv" })), download: table.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80) + ".csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say("Downloaded " + link.download);
  }

  // Heat maps of two columns; more columns as small multiples, or as slices that are chosen.
  function cellAt(table, fixed, row, column) {
    let at = 0;
    table.sizes.forEach((_, k) => { at += table.steps[k] * (k === row.axis ? row.code : k === column.axis ? column.code : fixed[k]); });
    return at;
  }
  function shade(table) {
    let low = Infinity, high = -Infinity;
    for (const value of table.values) { low = Math.min(low, value); high = Math.max(high, value); }
    low = Math.max(0, Math.min(low, 0));
    return (value) => high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0;
  }
  function grid(table, rows, columns, fixed, tone, readout) {
    const high = table.sizes[rows], wide = table.sizes[columns];
    return high * wide > 1600 ? canvas(table, rows, columns, fixed, tone, readout) : heat(table, rows, columns, fixed, tone, readout);
  }
  function heat(table, rows, columns, fixed, tone, readout) {
    const high = table.sizes[rows], wide = table.sizes[columns];
    const longest = (list, most) => Math.max(...list.map((text) => Math.min(text.length, most)));
    const left = 14 + 7.4 * Math.max(longest(table.lists[rows], 16), Math.min(14, table.columns[rows].length) + 2), square = wide > 14;
    const room = Math.min(600, byId("main").clientWidth - left - 8);
    const w = square ? Math.max(14, Math.min(26, 640 / wide)) : Math.max(50, Math.min(table.columns.length > 2 ? 58 : 96, room / wide)), h = square ? w : 30;
    const tilt = 7.2 * longest(table.lists[columns], 14) > w - 4, top = (tilt && !square ? 22 + 5 * longest(table.lists[columns], 14) : 22) + 18;
    const every = square ? Math.ceil(wide / 12) : 1, everyRow = square ? Math.ceil(high / 16) : 1;
    const parts = [sv("text", { x: left, y: 12, class: "axisname tick" }, short(table.columns[columns], 40) + " →"), sv("text", { x: left - 8, y: top - 6, class: "axisname tick", "text-anchor": "end" }, short(table.columns[rows], 14) + " ↓")];
    table.lists[columns].forEach((text, c) => {
      if (c % every) return;
      const cx = left + (c + 0.5) * w;
      parts.push(sv("text", { class: "tick", x: cx, y: top - 8, "text-anchor": tilt && !square ? "start" : "middle", transform: tilt && !square ? `rotate(-38 ${cx} ${top - 8})` : null }, short(text, square ? 5 : 14)));
    });
    table.lists[rows].forEach((text, r) => {
      if (r % everyRow === 0) parts.push(sv("text", { class: "tick", x: left - 8, y: top + (r + 0.5) * h + 4, "text-anchor": "end" }, short(text, 16)));
    });
    const frame = sv("rect", { class: "here", width: w, height: h, visibility: "hidden" });
    for (let r = 0; r < high; r += 1) for (let c = 0; c < wide; c += 1) {
      const row = cellAt(table, fixed, { axis: rows, code: r }, { axis: columns, code: c }), value = table.values[row], t = tone(value);
      const x = left + c * w, y = top + r * h;
      parts.push(sv("rect", { class: "cellbox", x, y, width: w - 1, height: h - 1, "fill-opacity": (0.06 + 0.94 * t).toFixed(3), "data-row": row }));
      if (!square) {
        const text = shown(value, table.places);
        parts.push(sv("text", { x: x + w / 2, y: y + h / 2 + 4.5, "text-anchor": "middle", class: t > 0.55 ? "strong" : null, "pointer-events": "none" }, text.length * 7.6 > w ? shown(value, 0) : text));
        if (table.within(row) && Math.abs(value) <= table.within(row)) parts.push(sv("circle", { class: "ring", cx: x + w - 8, cy: y + 7, r: 2.5 }));
      }
    }
    parts.push(frame);
    const width = left + wide * w + (tilt && !square ? 60 : 6), height = top + high * h + 6;
    const drawn = sv("svg", { class: height > 2400 ? "heat tall" : "heat", viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": "Heat map of " + table.title + "; the list below has the same counts" }, parts);
    drawn.addEventListener("mousemove", (event) => {
      const row = event.target.getAttribute && event.target.getAttribute("data-row");
      frame.setAttribute("visibility", row === null ? "hidden" : "visible");
      if (row === null) return;
      frame.setAttribute("x", event.target.getAttribute("x"));
      frame.setAttribute("y", event.target.getAttribute("y"));
      readout.textContent = table.name(+row) + ": " + table.text(+row);
    });
    return drawn;
  }
  function canvas(table, rows, columns, fixed, tone, readout) {
    const high = table.sizes[rows], wide = table.sizes[columns], side = Math.max(1, Math.floor(720 / Math.max(high, wide)));
    const drawn = el("canvas", { width: wide * side, height: high * side, role: "img", "aria-label": "Map of " + table.title + "; the list below has the same counts" });
    const paint = () => {
      const pen = drawn.getContext("2d"), style = getComputedStyle(document.documentElement);
      pen.fillStyle = style.getPropertyValue("--card");
      pen.fillRect(0, 0, drawn.width, drawn.height);
      pen.fillStyle = style.getPropertyValue("--mark");
      for (let r = 0; r < high; r += 1) for (let c = 0; c < wide; c += 1) {
        const t = tone(table.values[cellAt(table, fixed, { axis: rows, code: r }, { axis: columns, code: c })]);
        if (t > 0) { pen.globalAlpha = Math.sqrt(t); pen.fillRect(c * side, r * side, side, side); }
      }
      pen.globalAlpha = 1;
    };
    paint();
    document.addEventListener("themechange", paint);
    drawn.addEventListener("mousemove", (event) => {
      const box = drawn.getBoundingClientRect();
      const c = Math.min(wide - 1, Math.floor((event.clientX - box.left) / box.width * wide)), r = Math.min(high - 1, Math.floor((event.clientY - box.top) / box.height * high));
      if (r < 0 || c < 0) return;
      const row = cellAt(table, fixed, { axis: rows, code: r }, { axis: columns, code: c });
      readout.textContent = table.name(row) + ": " + table.text(row);
    });
    return drawn;
  }

  function heats(table, place) {
    const last = table.columns.length - 1, tone = shade(table);
    const readout = el("p", { class: "readout" }), chart = el("div", { class: "chart" });
    const scroll = (node) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Heat map of " + table.title }, node);
    const others = table.sizes.slice(0, last - 1).reduce((a, b) => a * b, 1);
    const small = table.sizes[last] * table.sizes[last - 1] <= 60;
    const unsure = table.values.some((value, row) => table.within(row) && Math.abs(value) <= table.within(row));
    const big = table.sizes[last] > 14;
    const hint = el("p", { class: "hint" }, "The stronger the colour, the more." + (unsure && !big ? " A small ring: the count may be zero." : "") + " The range of each count is in the list below.");
    if (last === 1) chart.append(hint, scroll(grid(table, 0, 1, [0, 0], tone, readout)));
    else if (others <= 12 && small) {
      const pieces = [];
      for (let k = 0; k < others; k += 1) {
        const fixed = table.sizes.map((size, axis) => axis < last - 1 ? Math.floor(k / table.sizes.slice(axis + 1, last - 1).reduce((a, b) => a * b, 1)) % size : 0);
        pieces.push(el("div", {}, [el("h4", {}, table.columns.slice(0, last - 1).map((column, axis) => column + " " + table.lists[axis][fixed[axis]]).join(", ")), scroll(grid(table, last - 1, last, fixed, tone, readout))]));
      }
      chart.append(hint, el("div", { class: "multiples" }, pieces));
    } else slices(table, chart, hint, tone, readout, scroll);
    chart.append(readout);
    place.append(chart);
  }
  function slices(table, chart, hint, tone, readout, scroll) {
    const last = table.columns.length - 1, holder = el("div"), tools = el("div", { class: "tools" });
    const state = { rows: last - 1, columns: last, fixed: table.sizes.map(() => 0) };
    const select = (name, options, value, change) => {
      const box = el("select", { "aria-label": name }, options.map((text, at) => el("option", { value: at, selected: at === value }, short(text, 40))));
      box.addEventListener("change", () => { change(+box.value); draw(); });
      return el("label", {}, [name + " ", box]);
    };
    function draw() {
      const boxes = [
        select("Rows", table.columns, state.rows, (at) => { if (at === state.columns) state.columns = state.rows; state.rows = at; }),
        select("Columns", table.columns, state.columns, (at) => { if (at === state.rows) state.rows = state.columns; state.columns = at; })];
      table.columns.forEach((column, k) => { if (k !== state.rows && k !== state.columns) boxes.push(select(column, table.lists[k], state.fixed[k], (at) => { state.fixed[k] = at; })); });
      const active = document.activeElement && document.activeElement.getAttribute("aria-label");
      tools.replaceChildren(...boxes);
      if (active) { const again = [...tools.querySelectorAll("select")].find((box) => box.getAttribute("aria-label") === active); if (again) again.focus(); }
      holder.replaceChildren(scroll(grid(table, state.rows, state.columns, state.fixed, tone, readout)));
    }
    draw();
    chart.append(hint, tools, holder);
  }

  // A long row of ordered values: a line with its range.
  function profile(table, place) {
    const n = table.count, wide = 820, high = 240, left = 62, bottom = 28;
    let low = 0, top = 0;
    for (let row = 0; row < n; row += 1) { low = Math.min(low, table.values[row] - table.within(row)); top = Math.max(top, table.values[row] + table.within(row)); }
    const x = (row) => left + (row + 0.5) / n * (wide - left), y = (value) => (high - bottom) * (1 - (value - low) / (top - low || 1)) + 6;
    const path = (value) => Array.from({ length: n }, (_, row) => `${x(row).toFixed(1)} ${y(value(row)).toFixed(1)}`);
    const upper = path((row) => table.values[row] + table.within(row)), lower = path((row) => table.values[row] - table.within(row)).reverse();
    const parts = nice(low, top, 4).map((tick) => sv("g", {}, [sv("line", { class: "grid", x1: left, x2: wide, y1: y(tick), y2: y(tick) }), sv("text", { class: "tick", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en"))]));
    parts.push(sv("path", { class: "band", d: "M" + upper.concat(lower).join("L") + "Z" }), sv("path", { class: "profile", d: "M" + path((row) => table.values[row]).join("L") }));
    const every = Math.ceil(n / 10);
    for (let row = 0; row < n; row += every) parts.push(sv("text", { class: "tick", x: x(row), y: high - 4, "text-anchor": "middle" }, short(table.label(row, 0), 10)));
    place.append(el("div", { class: "chart scroll", tabindex: 0, role: "region", "aria-label": "Chart of " + table.title }, sv("svg", { viewBox: `0 0 ${wide + 20} ${high + 4}`, width: wide + 20, role: "img", "aria-label": "Line of " + table.title + "; the list below has the same counts" }, parts)));
  }

  // Counts between groups of a network: groups as circles, counts as the width of lines.
  function groups(table, place) {
    const names = [...new Set(table.lists[0].concat(table.lists[1]))], n = names.length, radius = n < 3 ? 70 : Math.max(90, 15 * n), most = Math.max(1, ...table.values);
    const point = (name) => { const turn = Math.PI * (n < 3 ? 1 : 0.5) - 2 * Math.PI * names.indexOf(name) / n; return [radius * Math.cos(turn), -radius * Math.sin(turn)]; };
    const lines = [], circles = [], texts = [];
    const inside = {};
    table.values.forEach((value, row) => {
      const [a, b] = [table.label(row, 0), table.label(row, 1)];
      if (a === b) { inside[a] = row; return; }
      const [p, q] = [point(a), point(b)];
      if (value > 0) lines.push(sv("line", { x1: p[0], y1: p[1], x2: q[0], y2: q[1], "stroke-width": (14 * value / most).toFixed(1), "stroke-opacity": 0.55 }, sv("title", {}, `${a} – ${b}: ${table.text(row)}`)));
    });
    for (const name of names) {
      const [x, y] = point(name), row = inside[name], value = row === undefined ? 0 : Math.max(0, table.values[row]), out = Math.hypot(x, y) || 1;
      const size = 9 + 19 * Math.sqrt(value / most), beside = size + 8;
      circles.push(sv("circle", { cx: x, cy: y, r: size.toFixed(1) }, sv("title", {}, name + (row === undefined ? "" : ", inside: " + table.text(row)))));
      texts.push(sv("text", { x: x + beside * x / out, y: y + beside * y / out + 4, "text-anchor": Math.abs(x) < 0.3 * out ? "middle" : x > 0 ? "start" : "end" }, short(name, 18)));
    }
    const half = radius + 40 + 7.5 * Math.min(18, Math.max(...names.map((name) => name.length))), tall = (n < 3 ? 0 : radius) + 56;
    place.append(el("div", { class: "chart" }, [el("p", { class: "hint" }, Object.keys(inside).length ? "The wider a line, the more edges between two groups; the larger a circle, the more inside the group." : "The wider a line, the larger the number."),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Picture of " + table.title }, sv("svg", { class: "groups", viewBox: `${-half} ${-tall} ${2 * half} ${2 * tall}`, width: 2 * half, role: "img", "aria-label": "Groups of the network and the edges between them; the list below has the same counts" }, [...lines, ...circles, ...texts]))]));
  }

  function view(details) {
    if (details.dataset.drawn) return;
    details.dataset.drawn = "yes";
    const table = opened(details.dataset.table), place = details.querySelector(".view");
    if (!table.columns.length) { place.append(el("p", { class: "one" }, table.text(0))); return; }
    const groupsOf = table.columns.length === 2 && table.columns[0] === "from" && table.columns[1] === "to" && table.sizes[0] <= 24;
    if (groupsOf) groups(table, place);
    else if (table.product && table.columns.length === 1 && table.count > 40) profile(table, place);
    else if (table.product && table.columns.length > 1 && Math.max(...table.sizes) > 1) heats(table, place);
    counts(table, place);
    details.table = table;
  }

  // Which table: opening, finding, links from the picture of all tables.
  const all = [...document.querySelectorAll("details.released")];
  for (const details of all) {
    details.addEventListener("toggle", () => { if (details.open) view(details); });
    if (details.open) view(details);
  }
  function reveal(hash) {
    const target = hash.startsWith("#table-") ? byId(hash.slice(1)) : null;
    if (!target) return;
    target.hidden = false;
    target.open = true;
    view(target);
    target.scrollIntoView();
    target.querySelector("summary").focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", () => reveal(location.hash));
  reveal(location.hash);
  const finder = byId("finder");
  if (finder) {
    finder.hidden = false;
    byId("find").addEventListener("input", () => {
      const words = byId("find").value.toLowerCase().split(/[\s×,]+/).filter(Boolean);
      let found = 0;
      for (const details of all) {
        const title = details.querySelector("h3").textContent.toLowerCase();
        details.hidden = !words.every((word) => title.includes(word));
        found += !details.hidden;
      }
      byId("found").textContent = words.length ? found + " of " + all.length + " tables" : "";
    });
  }

  // One stop of the tabulator key for many marks, arrows between them.
  function roving(marks, perRow, chosen) {
    if (!marks.length) return;
    marks.forEach((mark, at) => mark.setAttribute("tabindex", at ? -1 : 0));
    marks.forEach((mark, at) => {
      mark.addEventListener("focus", () => { marks.forEach((other) => other.setAttribute("tabindex", other === mark ? 0 : -1)); chosen(at); });
      mark.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow(at), ArrowUp: -perRow(at), Home: -at, End: marks.length - 1 - at }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        marks[Math.max(0, Math.min(marks.length - 1, at + step))].focus();
      });
    });
  }

  const squares = [...document.querySelectorAll(".lattice a")];
  if (squares.length) {
    const under = (mark) => squares.forEach((other) => other.classList.toggle("under", mark !== null && other !== mark && (other.dataset.mask & mark.dataset.mask) === +other.dataset.mask));
    roving(squares, (at) => Math.max(1, squares.findIndex((mark, next) => next > at && mark.querySelector("rect").getAttribute("y") !== squares[at].querySelector("rect").getAttribute("y")) - at), (at) => under(squares[at]));
    squares.forEach((mark) => { mark.addEventListener("mouseenter", () => under(mark)); mark.addEventListener("mouseleave", () => under(null)); mark.addEventListener("blur", () => under(null));
      mark.addEventListener("click", () => { if (location.hash === mark.getAttribute("href")) reveal(location.hash); }); });
  }

  // The policy graph: how many steps the other cells are away from the chosen one.
  const graph = byId("graph");
  if (graph && byId("graph-data")) {
    const { names: given, edges } = load("graph-data"), names = given.map(plain), epsilon = graph.dataset.epsilon ? +graph.dataset.epsilon : null;
    const near = names.map(() => []), none = names.length;
    near.push([]);
    for (const [u, v] of edges) { const w = v < 0 ? none : v; near[u].push(w); near[w].push(u); }
    const marks = [...graph.querySelectorAll("[data-cell]")], lines = [...graph.querySelectorAll(".edge")];
    const across = graph.querySelector(".map") ? marks.findIndex((mark) => mark.getAttribute("y") !== marks[0].getAttribute("y")) : 1;
    function choose(at) {
      const away = new Array(names.length + 1).fill(-1), queue = [at];
      away[at] = 0;
      for (let k = 0; k < queue.length; k += 1) for (const next of near[queue[k]]) if (away[next] < 0) { away[next] = away[queue[k]] + 1; queue.push(next); }
      marks.forEach((mark, cell) => { for (const step of [0, 1, 2, 3]) mark.classList.toggle("step" + step, away[cell] === step); mark.setAttribute("aria-pressed", cell === at); });
      lines.forEach((line, k) => line.classList.toggle("lit", edges[k][0] === at || edges[k][1] === at));
      const tally = new Map();
      away.slice(0, names.length).forEach((steps) => { if (steps !== 0) tally.set(steps, (tally.get(steps) || 0) + 1); });
      const said = [1, 2, 3].filter((steps) => tally.has(steps)).map((steps) => tally.get(steps) + (tally.get(steps) === 1 ? " cell is " : " cells are ") + ["", "one step", "two steps", "three steps"][steps] + " away" + (epsilon ? ` (odds × ${figure(Math.exp(steps * epsilon))} at most)` : ""));
      const far = [...tally].filter(([steps]) => steps > 3).reduce((sum, [, count]) => sum + count, 0);
      if (far) said.push(far + (far === 1 ? " is" : " are") + " further away");
      if (away[none] >= 0) said.push(away[none] === 1 ? "no record at all: one step" : `no record at all: ${away[none]} steps`);
      if (tally.has(-1)) said.push(tally.get(-1) + " not joined to it: these may be told apart");
      byId("steps").textContent = names[at] + ": " + said.join("; ") + ".";
    }
    marks.forEach((mark, at) => { mark.setAttribute("role", "button"); mark.setAttribute("aria-label", names[at]); mark.addEventListener("click", () => { mark.focus(); choose(at); }); });
    roving(marks, () => Math.max(1, across), choose);
    if (marks.length) choose(Math.floor(marks.length / 2) + (across > 1 ? Math.floor(across / 2) : 0));
  }

  // Colours.
  const theme = byId("theme"), themes = ["automatic", "light", "dark"];
  let chosen = "automatic";
  try { chosen = localStorage.getItem("policygraph-theme") || chosen; } catch (refused) { /* private windows keep nothing */ }
  function paint() {
    if (chosen === "automatic") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = chosen;
    theme.textContent = "Theme: " + chosen;
    document.dispatchEvent(new Event("themechange"));
  }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    chosen = themes[(themes.indexOf(chosen) + 1) % 3];
    try { localStorage.setItem("policygraph-theme", chosen); } catch (refused) { /* the same */ }
    paint();
    say("Theme: " + chosen);
  });
  if (!themes.includes(chosen)) chosen = "automatic";
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

  // On paper: all rows of the open tables, up to a few hundred.
  let undo = [];
  window.addEventListener("beforeprint", () => { undo = all.filter((details) => details.open && details.table && details.table.showAll).map((details) => details.table.showAll()); });
  window.addEventListener("afterprint", () => { undo.forEach((back) => back()); undo = []; });
})();
