/** The process: reads the configuration, serves, and drains on SIGTERM. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "./config/config.js";
import { addEnvFile } from "./config/env-file.js";
import { type ConfigRead, readConfig } from "./config/environment.js";
import { setFastPaths } from "./fast/fast-paths.js";
import { startWithLowMemory } from "./fast/low-memory-start.js";
import { type OpenedLog, openLog } from "./lib/log.js";
import { reportStartFailure } from "./lib/start-error.js";
import { LEAVING, STOPPING } from "./lib/stop-words.js";

async function main(): Promise<void> {
  addEnvFile(process.env, process.cwd());
  // Its version is pinned here, so the advice is of no use to an operator.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
  const read = readConfig();
  setFastPaths(read.config.hasFastPaths);
  const opened = openLog(read.config.logLevel);
  if (isOfSeveral(read.config, opened.log)) return runSeveral(read.config, opened);
  return runOne(read, opened);
}

/** The embedded database supports one process only. */
function isOfSeveral({ workers, databaseUrl }: Config, log: OpenedLog["log"]): boolean {
  if (workers > 1 && databaseUrl === null) {
    log.warn(
      `WORKERS is ${workers}, but the embedded database serves one process, so one runs: set DATABASE_URL to a PostgreSQL database to run more, or unset WORKERS.`,
    );
  }
  return workers > 1 && databaseUrl !== null;
}

async function runSeveral(config: Config, { log, write, flush, end }: OpenedLog): Promise<void> {
  const { runWorkers } = await import("./workers/primary.js");
  const onReady = (baseUrl: string, newOwnerKey: string | null) => {
    flush();
    greet(config, baseUrl, newOwnerKey);
  };
  const code = await runWorkers({ config, log, write, onReady });
  await end();
  process.exit(code);
}

async function runOne({ config, warnOfDatabase, warnOfMisspelt }: ConfigRead, { log, flush, end }: OpenedLog): Promise<void> {
  const serveAtSpeed = startWithLowMemory();
  warnOfDatabase(log);
  const { createApp } = await import("./app.js");
  const app = await createApp(config, log).finally(() => warnOfMisspelt(log));
  const stop = (signal: NodeJS.Signals) => {
    // A second signal ends the process at once.
    process.off("SIGTERM", stop);
    process.off("SIGINT", stop);
    void leave(signal).then(async (code) => {
      await end();
      process.exit(code);
    });
  };
  /** Resolves with the exit code. */
  const leave = async (signal: NodeJS.Signals): Promise<number> => {
    const delayMs = config.shutdownDelayMs;
    if (delayMs > 0) {
      app.withdraw();
      log.info({ signal, delayMs }, LEAVING);
      await sleep(delayMs);
    }
    log.info({ signal }, STOPPING);
    try {
      await app.close();
      return 0;
    } catch (error) {
      log.error({ err: error }, "stopping failed");
      return 1;
    }
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // Found beside the first requests, so that the log of the start says whether code agents can run.
  void app.services.sandboxRunner.findIsolation();
  flush();
  serveAtSpeed();
  greet(config, app.addresses.baseUrl, config.ownerApiKey === null ? app.newOwnerKey : null);
}

/** Printed for a person on standard output; log lines stay JSON. */
function greet({ graphql }: Config, baseUrl: string, newOwnerKey: string | null): void {
  const lines = ["", `  Sluice is ready at   ${baseUrl}`, ...(graphql.graphiql ? [`  GraphiQL             ${baseUrl}/graphql`] : []), ""];
  if (newOwnerKey !== null) {
    lines.push(
      "  The owner's key, shown this once; put it into the shell:",
      "",
      `    export SLUICE_KEY=${newOwnerKey}`,
      "",
      "  Try it:",
      "",
      `    curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer $SLUICE_KEY" -H "Content-Type: application/json" -d '{"messages":[{"role":"user","content":"Hello!"}]}'`,
      "",
      "  Lost it? `npm run -s sluice -- owner key` makes another.",
      "",
    );
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

main().catch((error: unknown) => {
  process.exit(reportStartFailure(error));
});
