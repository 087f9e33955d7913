// Requests to the server: JSON, events of a stream, the key of a server with access rules, the chosen root.
// The key is kept in the session storage of this tab only, and sent in a header, never in an address.

const KEY = "graphrag-key";
const ROOT = "graphrag-root";
const kept = new Map();
const MOST_KEPT = 60;

export class RequestError extends Error {
  constructor(status, message, whatToDo) {
    super(message);
    this.status = status;
    this.whatToDo = whatToDo;
  }
}

export const session = {
  get key() { return sessionStorage.getItem(KEY) ?? ""; },
  set key(value) { forget(); store(KEY, value); },
  get root() { return sessionStorage.getItem(ROOT) ?? ""; },
  set root(value) { forget(); store(ROOT, value); },
};

function store(name, value) {
  if (value) sessionStorage.setItem(name, value); else sessionStorage.removeItem(name);
}

function address(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ root: session.root, ...params })) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") query.append(name, one);
    }
  }
  return query.size ? `${path}?${query}` : path;
}

function headers(more = {}) {
  return session.key ? { ...more, authorization: `Bearer ${session.key}` } : more;
}

async function send(target, options = {}) {
  let response;
  try {
    response = await fetch(target, { ...options, headers: headers(options.headers), credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The server does not answer.", "Check that it runs, then try again.");
  }
  if (!response.ok) throw await readError(response);
  return response;
}

async function readError(response) {
  const found = await response.json().catch(() => ({}));
  const { message = `The server answered ${response.status}.`, what_to_do: whatToDo = "" } = found.error ?? {};
  if (response.status === 401) window.dispatchEvent(new Event("graphrag-key-needed"));
  return new RequestError(response.status, message, whatToDo);
}

/** Return the answer to a GET; answers about one snapshot never change, so pages opened again need no request. */
export async function get(path, params, { isFresh = false } = {}) {
  const target = address(path, params);
  if (!isFresh && kept.has(target)) return kept.get(target);
  const answer = await (await send(target)).json();
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  if (noteSnapshot(answer)) kept.set(target, answer);
  return answer;
}

export async function post(path, body) {
  const response = await send(address(path), {
    method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" },
  });
  const answer = await response.json();
  noteSnapshot(answer);
  return answer;
}

let snapshot = "";
/** Forget the answers and the snapshot of another key or root. */
function forget() {
  kept.clear();
  snapshot = "";
  window.dispatchEvent(new CustomEvent("graphrag-snapshot", { detail: "" }));
}

/** Forget kept answers once an answer comes from another snapshot. */
function noteSnapshot(answer) {
  if (answer.snapshot && answer.snapshot !== snapshot) {
    kept.clear();
    snapshot = answer.snapshot;
    window.dispatchEvent(new CustomEvent("graphrag-snapshot", { detail: snapshot }));
  }
  return Boolean(answer.snapshot);
}

/** Post a body and call `take(name, data)` for each event of the answer. */
export async function stream(path, body, take, signal) {
  const response = await send(address(path), {
    method: "POST", body: JSON.stringify(body), signal,
    headers: { "content-type": "application/json", accept: "text/event-stream" },
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest = (rest + (value ?? "")).replaceAll("\r\n", "\n");
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) takeEvent(event, take);
    if (done) return;
  }
}

function takeEvent(event, take) {
  const lines = event.split("\n");
  const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
  if (!name || !data.length) return;
  const value = JSON.parse(data.join("\n"));
  if (name === "error") throw new RequestError(value.error?.status, value.error?.message, value.error?.what_to_do);
  noteSnapshot(value);
  take(name, value);
}
