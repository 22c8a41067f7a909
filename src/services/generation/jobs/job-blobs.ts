/** Which blobs are results of generation jobs: what the search for orphans asks. */

import { isUuid } from "../../../lib/ids.js";
import type { Database } from "../../../store/database.js";
import { blobKeyOf, JOB_BLOB_FOLDER } from "./job.js";

export async function findJobBlobs(database: Database, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const ids = keys.map((key) => key.slice(JOB_BLOB_FOLDER.length + 1)).filter((id) => isUuid(id));
  const jobs = await database.prisma.generationJob.findMany({ where: { id: { in: ids } }, select: { id: true } });
  return new Set(jobs.map(({ id }) => blobKeyOf(id)));
}
