/**
 * Each client of the SDK counts its requests from 0. Within a session no number may come twice (MCP, "Messages"), and a session outlives
 * the client of one exchange here: so requests go out under names of their own.
 */
import { randomUUID } from "node:crypto";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

/** `inner`, for one client. */
export function withUniqueIds(inner: Transport): Transport {
  const prefix = `${randomUUID()}:`;
  const outer: Transport = {
    start: () => {
      inner.onmessage = (message, extra) => outer.onmessage?.(toOwn(message, prefix), extra);
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      return inner.start();
    },
    send: (message, options) => inner.send(toUnique(message, prefix), options),
    close: () => inner.close(),
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
  };
  return Object.defineProperty(outer, "sessionId", { get: () => inner.sessionId });
}

function toUnique(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if (!("method" in message)) return message;
  if ("id" in message) return { ...message, id: `${prefix}${message.id}` };
  if (message.method !== "notifications/cancelled") return message;
  return { ...message, params: { ...message.params, requestId: `${prefix}${message.params?.requestId}` } };
}

function toOwn(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if ("method" in message || typeof message.id !== "string" || !message.id.startsWith(prefix)) return message;
  return { ...message, id: Number(message.id.slice(prefix.length)) };
}
