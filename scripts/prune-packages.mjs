/**
 * `npm ci` and `npm install` run this last: it removes files of packages that nothing here reads, a fifth of all. Those are source maps, and
 * Prisma's compilers for databases other than PostgreSQL.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const SOURCE_MAP = /\.(?:m|c)?(?:js|ts|css)\.map$/;
const OTHER_DATABASES = /^query_compiler_.*\.(?:cockroachdb|mysql|sqlite|sqlserver)\./;
const COMPILERS = ["node_modules/@prisma/client/runtime", "node_modules/prisma/build"];

removeBelow("node_modules", (name) => SOURCE_MAP.test(name));
for (const folder of COMPILERS) removeBelow(folder, (name) => OTHER_DATABASES.test(name));

function removeBelow(folder, isRemoved) {
  if (!existsSync(join(root, folder))) return;
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    // Links lead to folders of the project itself.
    if (entry.isDirectory()) removeBelow(path, isRemoved);
    else if (entry.isFile() && isRemoved(entry.name)) rmSync(join(root, path));
  }
}
