/**
 * `blob-writer <data directory>`: writes blobs as fast as it can, several at a time, some of them over and over, and prints each
 * one's key once it was stored. Runs until it is killed. Each begins with the hash of its rest.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { openDirectoryBlobs } from "../../../src/store/directory-blobs.js";

const WRITERS = 4;
const STDOUT = 1;
const BYTES_MAX = 300_000;

const [dataDir = ""] = process.argv.slice(2);
const blobs = await openDirectoryBlobs(dataDir);

async function write(index: number): Promise<never> {
  for (let count = 0; ; count += 1) {
    const rest = randomBytes(Math.ceil(Math.random() * BYTES_MAX));
    const bytes = Buffer.concat([createHash("sha256").update(rest).digest(), rest]);
    const key = count % 2 ? `media/${randomUUID()}` : `media/again-${index}`;
    await blobs.put(key, inPieces(bytes));
    // Synchronous, so that a line that was printed has left the process.
    writeSync(STDOUT, `${key}\n`);
  }
}

async function* inPieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += 50_000) {
    yield bytes.subarray(start, start + 50_000);
    await new Promise(setImmediate);
  }
}

await Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index)));
