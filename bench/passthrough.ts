/**
 * The reference of every benchmark: `node:http` in front, an undici `Pool` behind, nothing between. No key is checked,
 * nothing is parsed, metered or charged; what a gateway needs more than this is the price of being a gateway.
 *
 * `--upstream http://host:port`. Prints `{"port":n}` when it listens.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { type Dispatcher, Pool } from "undici";

const { values } = parseArgs({ options: { upstream: { type: "string", default: "" } } });
const pool = new Pool(values.upstream, { connections: 2048, headersTimeout: 300_000, bodyTimeout: 300_000 });
const requestHeaders = { "content-type": "application/json" };

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const body = parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts);
    pool.dispatch({ path: request.url ?? "/", method: "POST", headers: requestHeaders, body }, new Forwarder(response));
  });
});
server.listen(0, "127.0.0.1", 4096, () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(JSON.stringify({ port: address.port }));
});
process.on("SIGTERM", () => process.exit(0));

/** Writes what the upstream answers to the caller as it arrives, and holds the upstream when the caller reads slowly. */
class Forwarder implements Dispatcher.DispatchHandler {
  constructor(private readonly response: ServerResponse) {}

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.response.on("drain", () => controller.resume());
    this.response.on("close", () => {
      if (!this.response.writableFinished) controller.abort(new Error("The caller has gone."));
    });
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number, headers: IncomingHttpHeaders): void {
    const { "content-type": contentType = "application/octet-stream", "content-length": contentLength } = headers;
    const length = contentLength === undefined ? undefined : { "content-length": contentLength };
    this.response.writeHead(statusCode, { "content-type": contentType, ...length });
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (!this.response.write(bytes)) controller.pause();
  }

  onResponseEnd(): void {
    this.response.end();
  }

  onResponseError(): void {
    if (this.response.headersSent) this.response.destroy();
    else this.response.writeHead(502).end();
  }
}
