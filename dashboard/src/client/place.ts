/** Where this dashboard is, as the gateway has written it into the page. */
const root = document.getElementById("dashboard");
if (root === null) throw new Error("The page has no place for the dashboard.");

export const ROOT = root;

/** What stands before every path of the gateway's pages: empty, or a path without a slash at its end. */
export const BASE = root.dataset.base ?? "";

/** The address that API clients are given, without `/v1`. */
export const GATEWAY_URL = root.dataset.gateway || location.origin;

/** What style elements must carry here. A browser hides it from everything but `nonce`. */
export const NONCE = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
