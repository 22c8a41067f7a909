/** What the build of the dashboard needs beside Vite, which makes files that are named by their content and says in `manifest.json` what each begins with. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

/**
 * Compresses what Vite has made.
 * @param {string} folder
 */
export async function compressAssets(folder) {
  await Promise.all(
    readdirSync(folder).map(async (name) => {
      const contents = readFileSync(join(folder, name));
      writeFileSync(join(folder, `${name}.br`), await promisify(brotliCompress)(contents));
      writeFileSync(join(folder, `${name}.gz`), await promisify(gzip)(contents, { level: 9 }));
    }),
  );
}

const DIGEST = /\{"__meta__":\{"documentId":"([0-9a-f]{64})"\}\}/g;

/** urql takes a document without a text when its digest stands where it looks for it. */
export function digestsAlone(file) {
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(DIGEST, '{"kind":"Document","definitions":[],"documentId":"$1"}'));
}
