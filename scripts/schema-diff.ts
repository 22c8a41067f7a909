/** The SQL that turns a database into what a Prisma schema says. */
import type { Database } from "../src/store/database.js";
import { NO_FILTERS } from "../src/store/migrations.js";
import { createSchemaEngine } from "../src/store/schema-engine.js";

/** With `exitCode: true` the engine answers 2 when there is a difference. */
const EXIT_CODE_DIFFERENT = 2;

/** Null when the database is as the schema says. Checks, triggers and functions are not compared: the schema cannot state them. */
export async function diffSchema(database: Pick<Database, "openSession">, schema: string): Promise<string | null> {
  const session = database.openSession();
  try {
    const { engine } = await createSchemaEngine(session);
    const files = [{ path: "schema.prisma", content: schema }];
    const { exitCode, stdout } = await engine.diff({
      from: { tag: "schemaDatasource", files, configDir: "" },
      to: { tag: "schemaDatamodel", files },
      script: true,
      exitCode: true,
      filters: NO_FILTERS,
    });
    engine.free();
    return exitCode === EXIT_CODE_DIFFERENT ? stdout : null;
  } finally {
    await session.end();
  }
}
