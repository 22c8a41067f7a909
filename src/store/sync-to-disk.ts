/** Syncs files and directories: renames and new files need it besides their own writes. */
import { closeSync, fsyncSync, openSync } from "node:fs";

/** Syncs a file or a directory. */
export function syncToDisk(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
