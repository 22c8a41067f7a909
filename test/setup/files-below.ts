import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The paths of all files below `folder`, relative to it and with `/`, without those of installed packages. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name];
    if (entry.name === "node_modules") return [];
    return filesBelow(join(folder, entry.name)).map((name) => `${entry.name}/${name}`);
  });
}
