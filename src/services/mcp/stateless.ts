/** Requests of MCP's stateless revision: each says its revision and client in `_meta`, and its method in headers. */
import type { RpcFields } from "./rpc.js";

/** Without a handshake and without sessions. */
export const MCP_STATELESS_REVISION = "2026-07-28";

const META_PREFIX = "io.modelcontextprotocol/";
/** Visible ASCII, with blanks inside only. */
const PLAIN = /^[!-~](?:[ -~]*[!-~])?$/;
const ENCODED_START = "=?base64?";
const ENCODED_END = "?=";

export function withStatelessMeta(params: RpcFields, clientInfo: RpcFields): RpcFields {
  const meta = {
    [`${META_PREFIX}protocolVersion`]: MCP_STATELESS_REVISION,
    [`${META_PREFIX}clientCapabilities`]: {},
    [`${META_PREFIX}clientInfo`]: clientInfo,
  };
  return { ...params, _meta: meta };
}

/** `name`: of the called tool. */
export function statelessHeaders(method: string, { name }: RpcFields): Record<string, string> {
  return { "mcp-method": method, ...(typeof name === "string" && { "mcp-name": headerValueOf(name) }) };
}

function headerValueOf(text: string): string {
  if (PLAIN.test(text) && !text.startsWith(ENCODED_START)) return text;
  return ENCODED_START + Buffer.from(text).toString("base64") + ENCODED_END;
}
