/** Durability below the database: what a rename or a new file needs besides its own writes. */
import { closeSync, fsyncSync, openSync } from "node:fs";

/** Waits until a file or a folder's list of names is on disk. */
export function syncToDisk(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
