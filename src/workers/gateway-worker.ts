/** One of several processes of a gateway, started by its primary: a whole gateway, but for the port. */
import type { Socket } from "node:net";
import { type App, createApp } from "../app.js";
import { readConfig } from "../config/environment.js";
import { systemClock } from "../lib/clock.js";
import { openLog } from "../lib/log.js";
import { StartError } from "../lib/start-error.js";
import type { WorkerSeat } from "./messages.js";
import { PrimaryLink } from "./primary-link.js";

async function main(): Promise<void> {
  const seat: WorkerSeat = JSON.parse(process.argv[2] ?? "");
  const { config, warnOfMisspelt } = readConfig();
  const { log, flush } = openLog(config.logLevel);
  let app: App | null = null;
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    link.stopServing();
    if (app === null) process.exit(1);
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, "stopping failed");
        process.exit(1);
      },
    );
  };
  const link = new PrimaryLink(seat, () => {
    log.error("the primary is no more: this worker finishes what is under way, and ends");
    stop();
  });
  // More than once: a terminal and a supervisor tell all processes, and then the primary does.
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  try {
    app = await createApp({ ...config, port: seat.port }, log, systemClock, link);
  } finally {
    if (seat.isSpokesman) warnOfMisspelt(log);
  }
  const { http, newOwnerKey, services } = app;
  void services.sandboxRunner.findIsolation();
  flush();
  link.serve(config.ownerApiKey === null ? newOwnerKey : null, (socket: Socket) => void http.emit("connection", socket));
}

main().catch((error: unknown) => {
  const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
});
