/**
 * JSON-RPC messages of an MCP server, read as far as they are understood: fields that the gateway does not know are passed over, and
 * values that are no messages are skipped.
 */
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

/** The server refused a request in the words of the protocol. */
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

/** One message or a batch of them; empty for a text that is no JSON, or has more in it than any message has. */
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
