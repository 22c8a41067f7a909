/** The generator of clients for Go, which `.ci/go-clients` installs with the packages that its code imports. */
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

/** What to say when the search below answers null. */
export const GO_CLIENTS_ABSENT = "run .ci/go-clients";

export interface GoClients {
  /** The program oapi-codegen. */
  readonly generator: string;
  /** A folder with a module that has the packages. */
  readonly module: string;
}

export async function findGoClients(): Promise<GoClients | null> {
  const home = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "sluice/go-clients");
  const found = { generator: join(home, "bin/oapi-codegen"), module: join(home, "module") };
  try {
    await Promise.all([access(found.generator), access(join(found.module, "go.sum"))]);
    return found;
  } catch {
    return null;
  }
}
