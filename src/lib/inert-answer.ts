/**
 * Headers that keep a browser from running an answer: the type is the stated one, and a document made of it has no origin, script or
 * connection (docs/spec/http.md#inert-answers). Every answer of both faces has them; only the gateway's own pages have other policies.
 */
export const NO_SNIFFING = "nosniff";
export const INERT_POLICY = "default-src 'none'; sandbox";
/** For a file at its own address: other sites cannot frame it either. */
export const INERT_FILE_POLICY = `${INERT_POLICY}; frame-ancestors 'none'`;
