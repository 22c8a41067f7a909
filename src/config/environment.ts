/** The configuration of this process, and the variables that were read for it. */
import type { Logger } from "pino";
import { type Config, ENVIRONMENT_NAMES, parseConfig } from "./config.js";
import { COMMAND_NAMES, findMisspelt } from "./names.js";

export interface ConfigRead {
  readonly config: Config;
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
  return {
    config: { ...config, readEnv },
    warnOfMisspelt: (log) => {
      const read = new Set<string>([...ENVIRONMENT_NAMES, ...COMMAND_NAMES, ...namesRead]);
      for (const sentence of findMisspelt(Object.keys(env), read, ENVIRONMENT_NAMES)) log.warn(sentence);
    },
  };
}
