/** A broker of connected apps over HTTP, as docs/connected-apps.md says it: a server that can be made to misbehave. */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface BrokerRow {
  readonly id: string;
  readonly account: string;
  readonly toolkit: string;
  readonly status: string;
  readonly [field: string]: unknown;
}

export interface BrokerRequest {
  readonly line: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

export interface FakeBroker {
  /** With a path. */
  readonly url: string;
  readonly key: string;
  readonly requests: BrokerRequest[];
  readonly rows: Map<string, BrokerRow>;
  /** What answers in its place; null: itself. */
  misbehave: RequestListener | null;
  close(): Promise<void>;
}

const TOOLKITS = [
  { slug: "tasks", name: "Tasks", description: "Things to do.", logo: "https://broker.example/tasks.svg", categories: ["work"] },
  { slug: "chat", name: "Chat", logo: "javascript:alert(1)" },
];

export async function startFakeBroker(): Promise<FakeBroker> {
  const key = "the key of the broker";
  const requests: BrokerRequest[] = [];
  const rows = new Map<string, BrokerRow>();
  const server = createServer(async (req, res) => {
    const body = await text(req);
    requests.push({
      line: `${req.method} ${req.url}`,
      authorization: req.headers.authorization,
      body: body === "" ? null : (JSON.parse(body) as unknown),
    });
    if (broker.misbehave) return broker.misbehave(req, res);
    const [status, answer] = req.headers.authorization === `Bearer ${key}` ? answerOf(req, body) : [401, { error: "no" }];
    res.writeHead(status, { "Content-Type": "application/json" }).end(answer === null ? "" : JSON.stringify(answer));
  });
  const answerOf = (req: IncomingMessage, body: string): [status: number, answer: unknown] => {
    const { pathname, searchParams } = new URL(req.url ?? "", "http://broker");
    const id = /^\/api\/connections\/([^/]+)$/.exec(pathname)?.[1];
    switch (`${req.method} ${id === undefined ? pathname : "id"}`) {
      case "GET /api/toolkits":
        return [200, { data: TOOLKITS.filter(({ slug }) => slug.includes(searchParams.get("search") ?? "")) }];
      case "GET /api/connections":
        return [200, { data: [...rows.values()].filter(({ account }) => account === searchParams.get("account")) }];
      case "POST /api/connections": {
        const { account, toolkit } = JSON.parse(body) as { account: string; toolkit: string };
        if (!TOOLKITS.some(({ slug }) => slug === toolkit)) return [404, { error: "no such toolkit" }];
        const row = { id: `con/${rows.size + 1}`, account, toolkit, status: "INITIATED" };
        rows.set(row.id, row);
        return [201, { id: row.id, url: `https://broker.example/connect/${rows.size}`, expires: "soon" }];
      }
      case "DELETE id":
        return rows.delete(decodeURIComponent(id ?? "")) ? [204, null] : [404, { error: "no such connection" }];
      default:
        return [404, { error: "no such path" }];
    }
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const broker: FakeBroker = {
    url: `http://127.0.0.1:${port}/api/`,
    key,
    requests,
    rows,
    misbehave: null,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return broker;
}
