import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CodeAgentHost } from "../../../src/services/agents/code-agents.js";
import { LoopbackClient } from "../../../src/services/mcp/loopback-client.js";

let server: Server;
let gateway: LoopbackClient;
let host: CodeAgentHost;

beforeAll(async () => {
  server = createServer((_request, response) => response.end("the whole answer")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  gateway = new LoopbackClient(
    () => baseUrl,
    () => ({ baseUrl }),
  );
  const noTools = { callTool: () => Promise.reject(new Error("there are no tools")) };
  host = new CodeAgentHost(gateway, noTools as never, "ag_token", undefined);
});
afterAll(async () => {
  await gateway.close();
  server.close();
});

it("keeps an answer that its agent reads late through garbage collections", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const ask = () => host.fetch({ method: "GET", path: "/", headers: [], body: new Uint8Array() }, new AbortController().signal);
  const { body } = await ask();

  // The Response is dropped, and fetch notices that a few turns later.
  for (let round = 0; round < 5; round += 1) {
    collect();
    await turn();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }

  const read: Uint8Array[] = [];
  for (let next = await body.next(); !next.done; next = await body.next()) read.push(next.value);
  expect(Buffer.concat(read).toString()).toBe("the whole answer");
});
