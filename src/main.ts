/** The process: reads its configuration, serves, and drains on SIGTERM. */
import { pino } from "pino";
import { createApp } from "./app.js";
import { parseConfig } from "./config.js";
import { StartError } from "./lib/start-error.js";

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  const log = pino({ level: config.logLevel });
  const app = await createApp(config, log);
  const addresses = await app.listen();
  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, "stopping: no new connections, streams may finish");
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, "stopping failed");
        process.exit(1);
      },
    );
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  // Tried beside the first requests, so that what is logged at the start says what code agents are worth here.
  void app.services.guests.findWall();
  greet(addresses.baseUrl, config.ownerApiKey === null ? app.newOwnerKey : null);
}

/** On standard output for the person who started it; logs go on being JSON lines beside it. */
function greet(baseUrl: string, newOwnerKey: string | null): void {
  const lines = ["", `  Sluice is ready at   ${baseUrl}`, `  GraphiQL             ${baseUrl}/graphql`, ""];
  if (newOwnerKey !== null) {
    lines.push(
      "  The owner's key, shown this once:",
      "",
      `    ${newOwnerKey}`,
      "",
      "  Try it:",
      "",
      `    curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer ${newOwnerKey}" -H "Content-Type: application/json" -d '{"messages":[{"role":"user","content":"Hello!"}]}'`,
      "",
    );
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

main().catch((error: unknown) => {
  const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
});
