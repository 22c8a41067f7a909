/**
 * An MCP server on a port of its own, made with the official SDK, one server for each session. It records its requests.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

export interface McpRequestNote {
  /** GET, POST or DELETE. */
  readonly verb: string;
  /** The protocol's: `tools/call`; null without a body. */
  readonly method: string | null;
  /** The name in a tool call. */
  readonly tool: string | null;
  readonly id: unknown;
  readonly sessionId: string | null;
  readonly authorization: string | null;
}

export interface TestMcpServer {
  readonly url: string;
  readonly noted: readonly McpRequestNote[];
  /** Sessions that are still open. */
  readonly sessions: ReadonlyMap<string, unknown>;
  /** The server forgets every session, like one that was restarted. */
  forgetSessions(): void;
  close(): Promise<void>;
}

export interface TestMcpServerOptions {
  /** For streams that can be taken up again. */
  readonly eventStore?: () => EventStore;
  /** Answers in place of the SDK when it returns true. */
  readonly intercept?: (note: McpRequestNote, req: IncomingMessage, res: ServerResponse) => boolean;
}

export async function startMcpServer(create: () => McpServer, options: TestMcpServerOptions = {}): Promise<TestMcpServer> {
  const noted: McpRequestNote[] = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const http = createServer(async (req, res) => {
    const text = await textOf(req);
    const body = text === "" ? undefined : (JSON.parse(text) as { id?: unknown; method?: string; params?: { name?: string } });
    const sessionId = (req.headers["mcp-session-id"] as string | undefined) ?? null;
    const note: McpRequestNote = {
      verb: req.method ?? "",
      method: body?.method ?? null,
      tool: body?.params?.name ?? null,
      id: body?.id,
      sessionId,
      authorization: req.headers.authorization ?? null,
    };
    noted.push(note);
    if (options.intercept?.(note, req, res)) return;
    const transport = sessionId === null ? await begin() : sessions.get(sessionId);
    if (transport) await transport.handleRequest(req, res, body);
    else res.writeHead(404).end();
  });
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
      ...(options.eventStore ? { eventStore: options.eventStore(), retryInterval: 1 } : {}),
    });
    await create().connect(transport as Parameters<McpServer["connect"]>[0]);
    return transport;
  };
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    noted,
    sessions,
    forgetSessions: () => sessions.clear(),
    close: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}

/** Remembers every event of one session. */
export function createEventStore(): EventStore {
  const events: { streamId: string; message: Parameters<EventStore["storeEvent"]>[1] }[] = [];
  return {
    storeEvent: async (streamId, message) => String(events.push({ streamId, message })),
    replayEventsAfter: async (lastEventId, { send }) => {
      const streamId = events[Number(lastEventId) - 1]?.streamId ?? "";
      for (const [index, event] of events.entries()) {
        const isMissed = index >= Number(lastEventId) && event.streamId === streamId && "jsonrpc" in event.message;
        if (isMissed) await send(String(index + 1), event.message);
      }
      return streamId;
    },
  };
}

async function textOf(req: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of req.setEncoding("utf8")) text += part;
  return text;
}
