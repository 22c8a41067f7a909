/** The configuration of this process, and the variables that were read for it. */
import type { Logger } from "pino";
import { type Config, ENVIRONMENT_NAMES, parseConfig } from "./config.js";
import { COMMAND_NAMES, findMisspelt, findUnread } from "./names.js";

export interface ConfigRead {
  readonly config: Config;
  /** Call before a database is made: of names that were meant to say which. */
  warnOfDatabase(log: Pick<Logger, "warn">): void;
  /** Call after the models file was read too: a start may have failed because of a misspelt name. */
  warnOfMisspelt(log: Pick<Logger, "warn">): void;
}

/** Throws a ConfigError. */
export function readConfig(): ConfigRead {
  const { env } = process;
  const config = parseConfig(env);
  const namesRead = new Set<string>();
  const readEnv: Config["readEnv"] = (name) => {
    namesRead.add(name);
    return config.readEnv(name);
  };
  const said = new Set<string>();
  const say = (log: Pick<Logger, "warn">, sentence: string) => {
    if (!said.has(sentence)) log.warn(sentence);
    said.add(sentence);
  };
  return {
    config: { ...config, readEnv },
    warnOfDatabase: (log) => {
      const read = new Set<string>([...ENVIRONMENT_NAMES, ...COMMAND_NAMES]);
      for (const sentence of findMisspelt(Object.keys(env), read, ["DATABASE_URL"])) say(log, sentence);
    },
    warnOfMisspelt: (log) => {
      const read = new Set<string>([...ENVIRONMENT_NAMES, ...COMMAND_NAMES, ...namesRead]);
      const unread = findUnread(Object.keys(env), read);
      const misspelt = findMisspelt(Object.keys(env), read, ENVIRONMENT_NAMES);
      const isSaid = (sentence: string) => unread.some((other) => other.startsWith(`${sentence.split(" ", 1)[0]} `));
      for (const sentence of [...unread, ...misspelt.filter((each) => !isSaid(each))]) say(log, sentence);
    },
  };
}
