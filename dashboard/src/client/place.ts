/** Addresses and settings that the gateway writes into the HTML page. */
const root = document.getElementById("dashboard");
if (root === null) throw new Error("The page has no element for the dashboard.");

export const ROOT = root;

/** Path prefix of all pages of the gateway, without a slash at its end. Often empty. */
export const BASE = root.dataset.base ?? "";

/** Public URL of the API, without `/v1`. */
export const GATEWAY_URL = root.dataset.gateway || location.origin;

/** True when the gateway serves GraphiQL at /graphql. */
export const HAS_GRAPHIQL = root.dataset.graphiql !== undefined;

/** Nonce that the page's CSP demands of style elements. Browsers reveal it through the property `nonce` only. */
export const NONCE = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
