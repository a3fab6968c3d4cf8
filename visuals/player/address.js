// The address holds what made the picture: settings from the server, and what is looked at.

let opening = openingOf(location.search);

function openingOf(search) {
  const query = new URLSearchParams(search), complaints = [];
  const number = (name) => {
    if (!query.has(name)) return undefined;
    const value = Number(query.get(name));
    if (Number.isInteger(value) && value >= 0) return value;
    complaints.push(`The link gives ${name} as "${query.get(name).slice(0, 40)}", no whole number.`);
    return undefined;
  };
  const among = (name, known) => {
    const value = query.get(name);
    if (value === null || known.includes(value)) return value ?? undefined;
    complaints.push(`The link gives ${name} as "${value.slice(0, 40)}", which is not here.`);
    return undefined;
  };
  const names = query.get("views")?.split(",");
  const views = names?.filter((name) => VIEWS[name]);
  if (names && views.length < names.length) complaints.push("The link names views that are not here.");
  return {
    frame: number("frame"), row: number("row"), model: among("cache", ["target", "draft"]),
    shows: among("shows", ["state", "error"]), views, complaints, live: query.has("prompts"),
  };
}

// What the link asked to look at, once the run has come so far.
function arrive() {
  if (!opening || opening.live !== (payload.live === "live")) return;
  if (opening.frame >= steps.length && !isOver()) return;
  const { frame, row, model, shows, views, complaints } = opening;
  opening = null;
  if (views) for (const name of Object.keys(VIEWS)) toggleView(name, views.includes(name));
  if (model) choose("model", model);
  if (shows) choose("shows", shows);
  if (row !== undefined) chooseRow(Math.min(row, payload.lanes[0].prompts.length - 1));
  if (frame !== undefined) go(frame);
  if (frame >= steps.length) complaints.push(`The link asks for phase ${frame}, but the run has ${steps.length}.`);
  if (complaints.length) describe(complaints.join(" "));
}

// What is looked at now, added to a query.
function noteLook(query) {
  query.set("frame", cursor);
  query.set("row", state.row);
  if (state.model !== "target") query.set("cache", state.model);
  if (state.shows !== "state") query.set("shows", state.shows);
  if (Object.entries(VIEWS).some(([name, view]) => state.views.has(name) !== Boolean(view.on)))
    query.set("views", [...state.views].join(","));
  return query;
}

let noting = null;
function noteAddress() {
  if (opening) return;
  clearTimeout(noting);
  noting = setTimeout(() => {
    const query = noteLook(new URLSearchParams(payload.link || ""));
    const theme = new URLSearchParams(location.search).get("__theme");
    if (theme) query.set("__theme", theme);
    history.replaceState(history.state, "", `?${query}`);
  }, 200);
}
