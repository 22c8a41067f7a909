/**
 * What keeps a browser from running an answer, whatever is in it: the type is the one that is stated, and the document that it would
 * make has no origin, no script and no connection (docs/spec/http.md#inert-answers). Every answer of both faces carries it; only the
 * gateway's own pages have policies of their own instead.
 */
export const NO_SNIFFING = "nosniff";
export const INERT_POLICY = "default-src 'none'; sandbox";
/** Of a file that stands at an address of its own: nobody's page shows it as its own, either. */
export const INERT_FILE_POLICY = `${INERT_POLICY}; frame-ancestors 'none'`;
