// Addresses of pages: `#/entities/5?sort=degree` is the page "entities", the key "5" and a parameter.

export function readRoute(hash) {
  const [, path, query] = hash.match(/^#?\/?([^?]*)\??(.*)$/s); // a question may hold question marks
  const [page, ...rest] = path.split("/");
  return { page: page || "ask", key: decode(rest.join("/")), params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return ""; }
}

export function link(page, key = "", params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return `#/${page}${key !== "" ? `/${encodeURIComponent(key)}` : ""}${query.size ? `?${query}` : ""}`;
}

export function go(page, key, params) {
  location.hash = link(page, key, params);
}
