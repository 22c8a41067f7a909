/** The process: reads its configuration, serves, and drains on SIGTERM. */
import { pino } from "pino";
import { type App, createApp } from "./app.js";
import { type Config, ENVIRONMENT_NAMES, parseConfig } from "./config/config.js";
import { addEnvFile } from "./config/env-file.js";
import { COMMAND_NAMES, findMisspelt } from "./config/names.js";
import { StartError } from "./lib/start-error.js";

/** A page: more than that is written at once. */
const LOG_WRITE_BYTES = 4_096;
/** Somebody may be looking on. */
const LOG_FLUSH_MS = 100;

async function main(): Promise<void> {
  addEnvFile(process.env, process.cwd());
  const { config, namesRead } = readConfig();
  // Lines are gathered for a moment and handed to the system together, beside the work: a write for each costs more than the line, and a
  // reader who is slow holds up nobody. What is left when the process ends, however it ends but by SIGKILL, is written then.
  const output = pino.destination({ sync: false, minLength: LOG_WRITE_BYTES, periodicFlush: LOG_FLUSH_MS });
  const log = pino({ level: config.logLevel }, output);
  let app: App;
  try {
    app = await createApp(config, log);
  } finally {
    // What the models file names is known by now. A start that failed may have failed for it.
    const read = new Set<string>([...ENVIRONMENT_NAMES, ...COMMAND_NAMES, ...namesRead]);
    for (const sentence of findMisspelt(Object.keys(process.env), read, ENVIRONMENT_NAMES)) log.warn(sentence);
  }
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
  void app.services.sandboxRunner.findIsolation();
  output.flushSync();
  greet(app.addresses.baseUrl, config.ownerApiKey === null ? app.newOwnerKey : null);
}

/** With the names of the variables that other files make it read. */
function readConfig(): { config: Config; namesRead: ReadonlySet<string> } {
  const config = parseConfig(process.env);
  const namesRead = new Set<string>();
  const readEnv: Config["readEnv"] = (name) => {
    namesRead.add(name);
    return config.readEnv(name);
  };
  return { config: { ...config, readEnv }, namesRead };
}

/** On standard output for the person who started it; logs go on being JSON lines beside it. */
function greet(baseUrl: string, newOwnerKey: string | null): void {
  const lines = ["", `  Sluice is ready at   ${baseUrl}`, `  GraphiQL             ${baseUrl}/graphql`, ""];
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
  const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
});
