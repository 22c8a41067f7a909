/** Where the code of the database's thread and of its first start is. */
import { resolveWorkerFile as resolveFile } from "../lib/worker-file.js";

/** The file of `src/store/<name>.ts` that Node can load. */
export function resolveWorkerFile(name: "embedded-worker" | "embedded-initialize"): Promise<string> {
  return resolveFile(`store/${name}`);
}
