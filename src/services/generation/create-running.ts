/** The generations of this process, ended when their account is suspended or their run ends. */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { RunningGenerations } from "./cancellation.js";
import { RunWatch } from "./run-watch.js";
import { SuspensionWatch } from "./suspension-watch.js";

export function createRunning(database: Database, events: Events, log: Logger): RunningGenerations {
  const running = new RunningGenerations();
  new SuspensionWatch(database, running, log, events);
  new RunWatch(database, running, log, events);
  return running;
}
