/** The configuration of this process, and which variables it has read for it. */
import type { Logger } from "pino";
import { type Config, ENVIRONMENT_NAMES, parseConfig } from "./config.js";
import { COMMAND_NAMES, findMisspelt } from "./names.js";

export interface ConfigRead {
  readonly config: Config;
  /** To be called when what the models file names has been read, too: a start that failed may have failed for a name. */
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
