// The page: asks the server for JSON, draws it with the DOM (never as HTML), sends actions.
"use strict";

const PERIOD_MS = 3000;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
let state = { user: null };
let timer = 0;
let pending = null;

// --- what each section shows: title, columns [name, label, kind], a word for none ---------------

const SECTIONS = {
  sessions: {
    title: "Sessions",
    none: "There are no sessions.",
    columns: [
      ["pid", "Pid", "number"], ["pid", "", "actions"], ["role", "Role"],
      ["state", "State", "state"], ["wait", "Waits for", "wait"], ["blocked_by", "Blocked by"],
      ["transaction_at", "Transaction", "age"], ["query_at", "Statement", "age"],
      ["query", "Text", "text"], ["application", "Application"], ["address", "Address"],
    ],
  },
  statements: {
    title: "Slow statements",
    none: "No statement has been counted yet.",
    hints: { "42P01": "CREATE EXTENSION pg_stat_statements shows them here." },
    columns: [
      ["total_ms", "Total ms", "number"], ["calls", "Calls", "number"],
      ["mean_ms", "Mean ms", "number"], ["max_ms", "Most ms", "number"],
      ["rows", "Rows", "number"], ["role", "Role"], ["query", "Text", "text"],
    ],
  },
  timelines: {
    title: "Timelines",
    none: "There are no timelines.",
    columns: [
      ["name", "Name"], ["clock", "Clock"], ["read_at", "Last change", "age"],
      ["since_at", "History", "age"], ["clock_doubted", "Clock doubted", "doubt"],
      ["validated", "Validated", "number"], ["conflicts", "Conflicts", "conflicts"],
    ],
  },
  tables: {
    title: "Tables",
    none: "There are no tables.",
    columns: [
      ["name", "Table", "table"], ["timeline", "Timeline"], ["bytes", "Size", "bytes"],
      ["rows", "Rows", "number"], ["files", "Files", "number"],
      ["tail_rows", "Rows in memory", "number"], ["tail_bytes", "In memory", "bytes"],
      ["since_at", "History", "history"], ["inserted", "Inserted", "number"],
      ["updated", "Updated", "number"], ["deleted", "Deleted", "number"],
      ["fence", "Fenced", "bad"],
    ],
  },
  locks: {
    title: "Locks",
    none: "Nobody holds a lock.",
    columns: [
      ["pid", "Pid", "number"], ["type", "Of", ""], ["relation", "Relation"], ["mode", "Mode"],
      ["granted", "Granted", "granted"],
    ],
  },
  subscriptions: {
    title: "Subscriptions",
    none: "Nobody subscribes.",
    columns: [
      ["id", "Id", "number"], ["pid", "Pid", "number"], ["name", "Table", "table"],
      ["timeline", "Timeline"], ["state", "State"], ["position_at", "Position", "age"],
    ],
  },
  engines: {
    title: "Engines",
    none: "No statement has been counted yet.",
    columns: [
      ["engine", "Engine"], ["calls", "Calls", "number"],
      ["statements", "Different statements", "number"],
    ],
  },
};

// --- talking to the server ----------------------------------------------------------------------

class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function ask(path, body) {
  const options = { cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    if (state.token) options.headers["X-Meridian-Token"] = state.token;
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused(0, "the server does not answer");
  }
  const told = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  if (!answer.ok) throw new Refused(answer.status, told.error);
  return told;
}

function say(text, isBad = false) {
  const place = byId("message");
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("bad", isBad);
}

// --- drawing ------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// "2026-01-02 03:04:05.678+00" in milliseconds; the server tells UTC.
function moment(text) {
  const found = /^(\d+-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)/.exec(text ?? "");
  return found === null ? null : Date.parse(`${found[1]}T${found[2]}Z`);
}

function age(text, now) {
  const at = moment(text);
  if (at === null) return "";
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function bytes(text) {
  if (text === null) return "";
  let size = Number(text), unit = 0;
  while (size >= 1024 && unit < 4) { size /= 1024; unit += 1; }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

function number(text) {
  return text === null ? "" : text.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

// A table's history: since, the newest cut, upper; the scale is that of the longest one.
function history(row, scale) {
  const [since, cut, upper] = [row.since_at, row.cut_at, row.upper_at].map(moment);
  if (since === null || upper === null) return "";
  const at = (when) => 100 - 98 * Math.min(1, (upper - when) / scale);
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("class", "history");
  picture.setAttribute("viewBox", "0 0 102 10");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  const told = `readable since ${age(row.since_at, upper)} ago, in files up to ${age(row.cut_at, upper)} ago`;
  picture.setAttribute("aria-label", told);
  const title = document.createElementNS(SVG, "title");
  title.textContent = told;
  picture.append(title);
  const line = (name, from, to, top, bottom) => {
    const made = document.createElementNS(SVG, "line");
    const places = { x1: from, x2: to, y1: top, y2: bottom, class: name };
    for (const [key, value] of Object.entries(places)) made.setAttribute(key, value);
    picture.append(made);
  };
  line("line", at(since), 100, 5, 5);
  if (cut !== null && cut > since) line("written", at(since), at(cut), 5, 5);
  line("cut", 100, 100, 0, 10);
  return picture;
}

function cell(row, name, kind, now, scale) {
  const value = row[name];
  switch (kind) {
    case "age": return age(value, now);
    case "bytes": return bytes(value);
    case "number": return number(value);
    case "table": return row.schema === "public" ? value : `${row.schema}.${value}`;
    case "wait": return value === null ? "" : `${row.wait_type}: ${value}`;
    case "history": return history(row, scale);
    case "conflicts": {
      const by = ["predicate", "table", "row", "key"].filter((one) => row[`by_${one}`] !== "0");
      const told = by.map((one) => `${number(row[`by_${one}`])} by ${one}`);
      return told.length ? told.join(", ") : "0";
    }
    case "doubt": return value === "t" ? make("strong", { class: "bad" }, "yes") : "no";
    case "granted": return value === "t" ? "yes" : make("strong", { class: "warm" }, "waits");
    case "bad": return value === null ? "" : make("strong", { class: "bad" }, value);
    case "text": return value && row.own !== "t" ? make("code", {}, value) : "";
    case "state": {
      const shade = { active: "good", idle: "quiet" }[value] ?? "warm";
      return value === null ? row.kind ?? "" : make("span", { class: shade }, value);
    }
    default: return value ?? "";
  }
}

function actions(row) {
  if (row.own === "t") return [make("span", { class: "quiet" }, "this page")];
  if (!state.acts || row.kind !== "client backend") return [];
  return [["cancel", "Cancel"], ["terminate", "Terminate"]].map(([verb, label]) => {
    const key = `${verb}-${row.pid}`;
    const button = make("button", { type: "button", "data-key": key }, label);
    button.setAttribute("aria-label", `${label} ${row.pid}`);
    button.addEventListener("click", () => confirmAction(verb, row));
    return button;
  });
}

function drawRows(shown, rows, now) {
  const scale = Math.max(1, ...rows.map((row) => moment(row.upper_at) - moment(row.since_at) || 0));
  const head = make("tr");
  for (const [, label, kind] of shown.columns) {
    head.append(make("th", { scope: "col", class: kind === "bytes" ? "number" : kind ?? "" }, label));
  }
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    for (const [name, label, kind] of shown.columns) {
      const content = kind === "actions" ? actions(row) : [cell(row, name, kind, now, scale)];
      const isEmpty = content.length === 0 || content[0] === "";
      const shape = kind === "bytes" ? "number" : kind ?? "";
      line.append(make("td", { "data-label": label, class: `${shape}${isEmpty ? " empty" : ""}` }, ...content));
    }
    body.append(line);
  }
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body));
}

function drawSection(name, told, now) {
  const shown = SECTIONS[name];
  const rows = told.rows.map((values) => Object.fromEntries(values.map((v, i) => [told.columns[i], v])));
  const title = rows.length ? `${shown.title} (${rows.length})` : shown.title;
  const section = make("section", { id: name, "aria-labelledby": `title-${name}` });
  section.append(make("h2", { id: `title-${name}` }, title));
  if (told.error !== null) {
    const hint = (shown.hints ?? {})[told.sqlstate];
    section.append(make("p", hint ? {} : { class: "bad" }, hint ?? `${told.sqlstate}: ${told.error}`));
  } else {
    section.append(rows.length ? drawRows(shown, rows, now) : make("p", {}, shown.none));
  }
  return section;
}

function draw(data) {
  const focused = document.activeElement?.dataset?.key;
  const scrolled = [...document.querySelectorAll("section .scroll")].map((one) => [one.closest("section").id, one.scrollLeft]);
  // The server's clock, as its newest timeline tells it, or the browser's.
  const now = Date.now();
  const drawn = Object.keys(SECTIONS).filter((name) => name in data).map((name) => drawSection(name, data[name], now));
  byId("sections").replaceChildren(...drawn);
  for (const [name, left] of scrolled) {
    const place = document.querySelector(`#${name} .scroll`);
    if (place) place.scrollLeft = left;
  }
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  if (!byId("contents").hasChildNodes()) {
    for (const [name, shown] of Object.entries(SECTIONS)) {
      byId("contents").append(make("a", { href: `#${name}` }, shown.title));
    }
  }
}

// --- what happens -------------------------------------------------------------------------------

function show() {
  const isIn = state.user !== null;
  byId("login").hidden = isIn;
  byId("controls").hidden = byId("who").hidden = byId("contents").hidden = !isIn;
  if (!isIn) {
    byId("sections").replaceChildren();
    byId("contents").replaceChildren();
    byId("password").value = "";
    return;
  }
  byId("who").textContent = state.acts
    ? `as ${state.user}`
    : `as ${state.user}, to look only: no password was asked for`;
}

async function refresh() {
  clearTimeout(timer);
  const isPaused = byId("pause").getAttribute("aria-pressed") === "true";
  if (state.user !== null && !isPaused && !document.hidden && !byId("confirm").open) {
    try {
      draw(await ask("/page/data"));
      if (byId("message").classList.contains("bad")) say("");
    } catch (error) {
      if (error.status === 401) return begin();
      say(error.message, true);
    }
  }
  timer = setTimeout(refresh, PERIOD_MS);
}

async function begin() {
  clearTimeout(timer);
  try {
    state = await ask("/page/state");
    if (state.user === null && state.open) state = await ask("/page/login", { user: "meridian" });
  } catch (error) {
    state = { user: null };
    show();
    byId("login").hidden = error.status !== 401;
    say(error.message, true);
    timer = setTimeout(begin, PERIOD_MS);
    return;
  }
  show();
  if (state.user !== null) await refresh();
  else byId("user").focus();
}

async function logIn(event) {
  event.preventDefault();
  say("");
  const button = byId("login").querySelector("button");
  button.disabled = true;
  try {
    const given = { user: byId("user").value, password: byId("password").value };
    state = await ask("/page/login", given);
    show();
    byId("main").focus();
    await refresh();
  } catch (error) {
    say(error.message, true);
    byId("password").focus();
  } finally {
    button.disabled = false;
  }
}

async function logOut() {
  try {
    await ask("/page/logout", {});
  } catch (error) {
    say(error.message, true);
  }
  state = { user: null };
  show();
  byId("user").focus();
}

function confirmAction(verb, row) {
  pending = { verb, pid: Number(row.pid) };
  const deed = verb === "cancel" ? "Cancel the statement" : "End the session";
  byId("question").textContent = `${deed} of ${row.role}, pid ${row.pid}?`;
  byId("yes").textContent = verb === "cancel" ? "Cancel the statement" : "End the session";
  byId("confirm").showModal();
}

async function act() {
  const { verb, pid } = pending;
  byId("confirm").close();
  try {
    const told = await ask(`/page/${verb}`, { pid });
    const deed = verb === "cancel" ? "was asked to cancel its statement" : "was ended";
    say(told.done ? `${pid} ${deed}` : `${pid} is not there any more`, !told.done);
  } catch (error) {
    say(error.message, true);
  }
  setTimeout(refresh, 200);
}

byId("login").addEventListener("submit", logIn);
byId("logout").addEventListener("click", logOut);
byId("no").addEventListener("click", () => byId("confirm").close());
byId("yes").addEventListener("click", act);
byId("pause").addEventListener("click", () => {
  const isPaused = byId("pause").getAttribute("aria-pressed") !== "true";
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  if (!isPaused) refresh();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
begin();
