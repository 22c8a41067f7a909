import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { StopListening } from "../../src/fast/shared-port.js";
import { listenWithBursts } from "../../src/http/listening.js";
import { PassingStartError } from "../../src/lib/start-error.js";

const HOST = "127.0.0.1";
const CALLERS = 64;
const [MAJOR = 0, MINOR = 0] = process.versions.node.split(".").map(Number);
/** `net.ListenOptions.reusePort`. */
const CAN_SHARE_PORT = process.platform === "linux" && (MAJOR > 23 || (MAJOR === 22 && MINOR >= 12));

/** Opens as many connections, and ends when the system has taken all of them: no program need have accepted one. */
const CALL = `
  const { connect } = require("node:net");
  const [port, callers] = process.argv.slice(1).map(Number);
  const open = () => new Promise((resolve, reject) => connect(port, "${HOST}", resolve).on("error", reject));
  Promise.all(Array.from({ length: callers }, open)).then(() => process.exit(0));
`;

const portOf = (server: Server) => (server.address() as AddressInfo).port;

async function listening(server: Server): Promise<StopListening> {
  const stop = await listenWithBursts(server, HOST, 0);
  onTestFinished(() => stop());
  return stop;
}

const outcomeOf = (port: number) =>
  new Promise<string>((resolve) => {
    const socket = connect(port, HOST, () => {
      socket.destroy();
      resolve("taken");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });

describe("a port at which many come at once", () => {
  it.skipIf(!CAN_SHARE_PORT)("has them accepted in far fewer turns of the event loop than connections", async () => {
    let accepted = 0;
    const server = createServer((socket) => {
      accepted += 1;
      socket.on("error", () => undefined).resume();
    });
    await listening(server);

    // Meanwhile this process accepts none.
    execFileSync(process.execPath, ["-e", CALL, String(portOf(server)), String(CALLERS)]);
    let turns = 0;
    while (accepted < CALLERS) {
      turns += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }

    expect(turns).toBeLessThan(CALLERS / 2);
  });

  it("has all of them answered, through every socket, and none after it was stopped", async () => {
    const server = createHttpServer((_req, res) => res.end("here"));
    const stop = await listening(server);
    const port = portOf(server);
    const ask = async () => (await fetch(`http://${HOST}:${port}/`, { headers: { connection: "close" } })).text();

    expect(await Promise.all(Array.from({ length: CALLERS }, ask))).toEqual(Array(CALLERS).fill("here"));

    await new Promise<void>((resolve) => stop(resolve));
    const after = await Promise.all(Array.from({ length: CALLERS }, () => outcomeOf(port)));
    expect(after).toEqual(Array(CALLERS).fill("ECONNREFUSED"));
  });
});

describe("a port that another program has", () => {
  const refusal = (port: number) => new PassingStartError(`Port ${port} is in use: stop what listens there, or set PORT to another one.`);

  it("is not shared with another gateway", async () => {
    const first = createServer();
    await listening(first);

    await expect(listenWithBursts(createServer(), HOST, portOf(first))).rejects.toThrow(refusal(portOf(first)));
  });

  it("is not shared with another program", async () => {
    const other = createServer().listen(0, HOST);
    onTestFinished(() => void other.close());
    await once(other, "listening");

    await expect(listenWithBursts(createServer(), HOST, portOf(other))).rejects.toThrow(refusal(portOf(other)));
  });
});
