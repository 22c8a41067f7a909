/** What is free on the disk that a directory is on, for this process: what only the superuser may take is not. */
import { statfs } from "node:fs/promises";

/** In bytes. */
export async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
