/** A worker process, started by its primary: a whole gateway without the port. */
import type { Socket } from "node:net";
import { type App, createApp } from "../app.js";
import { readConfig } from "../config/environment.js";
import { setFastPaths } from "../fast/fast-paths.js";
import { startWithLowMemory } from "../fast/low-memory-start.js";
import { systemClock } from "../lib/clock.js";
import { openLog } from "../lib/log.js";
import { reportStartFailure } from "../lib/start-error.js";
import type { WorkerSeat } from "./messages.js";
import { PrimaryLink } from "./primary-link.js";

async function main(): Promise<void> {
  const { config, warnOfMisspelt } = readConfig();
  setFastPaths(config.hasFastPaths);
  const serveAtSpeed = startWithLowMemory();
  const seat: WorkerSeat = JSON.parse(process.argv[2] ?? "");
  const { log, flush, end } = openLog(config.logLevel);
  let app: App | null = null;
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    link.stopServing();
    void close().then(async (code) => {
      await end();
      process.exit(code);
    });
  };
  /** Resolves with the exit code. */
  const close = async (): Promise<number> => {
    if (app === null) return 1;
    try {
      await app.close();
      return 0;
    } catch (error) {
      log.error({ err: error }, "stopping failed");
      return 1;
    }
  };
  const link = new PrimaryLink(seat, {
    onLeaving: () => app?.withdraw(),
    onDrain: stop,
    onLost: () => {
      // The primary also read the log.
      if (!isStopping) process.stderr.write("The primary of this worker is no more: the worker finishes what is under way, and ends.\n");
      stop();
    },
  });
  // Repeated signals are usual: a terminal and a supervisor signal all processes, and then the primary does.
  process.on("SIGTERM", () => link.askToDrain());
  process.on("SIGINT", () => link.askToDrain());
  try {
    app = await createApp({ ...config, port: seat.port }, log, systemClock, link);
  } finally {
    if (seat.isPrimaryReporter) warnOfMisspelt(log);
  }
  const { http, newOwnerKey, services } = app;
  if (link.isLeaving) app.withdraw();
  void services.sandboxRunner.findIsolation();
  flush();
  serveAtSpeed();
  link.serve(config.ownerApiKey === null ? newOwnerKey : null, (socket: Socket) => void http.emit("connection", socket));
}

main().catch((error: unknown) => {
  process.exit(reportStartFailure(error));
});
