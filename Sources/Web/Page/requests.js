// The calls to the server of the page.

/** The session is over: no request will succeed any more. */
export class Expired extends Error {}
/** The server did not answer. */
export class Unreachable extends Error {}
/** The server refused, with a message in words. */
export class Refused extends Error {}

export let isExpired = false;
const patience = 20;

export async function request(path, options = {}) {
  let response, body;
  try {
    // A download is answered when it is done; a reading that takes this long is not.
    const signal = options.method ? undefined : AbortSignal.timeout(patience * 1000);
    response = await fetch(path, { cache: "no-store", credentials: "same-origin", signal, ...options });
    body = await response.json().catch(() => null);
  } catch (error) {
    if (error.name === "TimeoutError") throw new Refused(`The dashboard did not answer within ${patience} seconds.`);
    throw new Unreachable(error.message);
  }
  if (response.status === 401 || response.status === 403) {
    isExpired = true;
    throw new Expired();
  }
  if (!response.ok) throw new Refused(body?.message ?? `The dashboard answered with status ${response.status}.`);
  if (body === null) throw new Unreachable("The answer ended early.");
  return body;
}

let requests = 0;
const newest = {};

/** Numbers a reading. `isNewest` is false after a later reading of that kind has been shown: answers may overtake each other. */
export function reading(kind) {
  requests += 1;
  const order = requests;
  return {
    isNewest() {
      if (order < (newest[kind] ?? 0)) return false;
      newest[kind] = order;
      return true;
    },
  };
}

export const post = (path, body) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
