/** Lenient parsing of JSON-RPC messages of an MCP server: ignores unknown fields, and skips values that are no messages. */
import { isRecord } from "../../lib/json.js";
import { jsonExcess } from "../../lib/json-bounds.js";
import { UPSTREAM_JSON_BOUNDS } from "../../limits.js";

export type RpcId = string | number;
export type RpcFields = Readonly<Record<string, unknown>>;

export type RpcMessage =
  | { readonly kind: "request"; readonly id: RpcId; readonly method: string }
  | { readonly kind: "notification"; readonly method: string }
  | { readonly kind: "result"; readonly id: RpcId; readonly result: unknown }
  | { readonly kind: "error"; readonly id: RpcId | null; readonly error: RpcError };

/** The server refused a request with a JSON-RPC error. */
export class RpcError extends Error {
  override readonly name = "RpcError";

  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export const METHOD_NOT_FOUND = -32_601;
const INTERNAL_ERROR = -32_603;

/** One message or a batch; empty for text that is no JSON, or is larger than any message. */
export function readMessages(bytes: Buffer, text: string): readonly RpcMessage[] {
  if (jsonExcess(bytes, UPSTREAM_JSON_BOUNDS) !== null) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  return (Array.isArray(value) ? value : [value]).flatMap((one) => toMessage(one) ?? []);
}

function toMessage(value: unknown): RpcMessage | null {
  if (!isRecord(value)) return null;
  const id = typeof value.id === "string" || typeof value.id === "number" ? value.id : null;
  const { method, result, error } = value;
  if (typeof method === "string") return id === null ? { kind: "notification", method } : { kind: "request", id, method };
  if (isRecord(error)) return { kind: "error", id, error: toRpcError(error) };
  return result === undefined || id === null ? null : { kind: "result", id, result };
}

function toRpcError({ code, message }: RpcFields): RpcError {
  return new RpcError(
    Number.isSafeInteger(code) ? Number(code) : INTERNAL_ERROR,
    typeof message === "string" ? message : "It gave no reason.",
  );
}
