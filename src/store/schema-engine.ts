/**
 * Prisma's schema engine in this process: its native build is a download that may be impossible in a deployment, its WebAssembly build is
 * in the package.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum, type SqlDriverAdapter } from "@prisma/driver-adapter-utils";
import * as engineModule from "@prisma/schema-engine-wasm/schema_engine_bg";
import type pg from "pg";

export type SchemaEngine = engineModule.SchemaEngine;

const ENGINE_MODULE = "@prisma/schema-engine-wasm/schema_engine_bg";

const CHAR_EXPRESSIONS = /\bcon\.conf(?:del|upd)type\b|\bconstr\.contype\b/g;
const CHAR_COLUMNS = new Set(["confdeltype", "confupdtype", "constraint_type"]);

const SESSION_LOCK = "pg_advisory_lock(";

const EXTERNAL_ERROR = /External error id#(\d+)/;

declare global {
  // Node has it, but its types lack it.
  namespace WebAssembly {
    function instantiate(code: Uint8Array, imports: object): Promise<{ readonly instance: { readonly exports: Record<string, unknown> } }>;
  }
}

let engineReady: Promise<void> | null = null;

export interface EngineOnDatabase {
  readonly engine: SchemaEngine;
  /** The database's error behind an engine error, which only refers to it by number. */
  explain(error: unknown): unknown;
}

/** An engine on the pool's database. Call `engine.free()` when done; the pool stays open. */
export async function createSchemaEngine(pool: pg.Pool): Promise<EngineOnDatabase> {
  engineReady ??= instantiate();
  await engineReady;
  const factory = new PrismaPg(pool);
  const adapter = bindMigrationAwareSqlAdapterFactory({
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => adaptForEngine(await factory.connect(), pool),
    connectToShadowDb: () => Promise.reject(new Error("The engine is not given a shadow database.")),
  });
  return {
    engine: await engineModule.SchemaEngine.new({ datamodels: undefined }, () => undefined, adapter),
    explain: (error) => {
      const [, id] = EXTERNAL_ERROR.exec(String(error)) ?? [];
      return (id && adapter.errorRegistry.consumeError(Number(id))?.error) || error;
    },
  };
}

/** Three changes for the engine to an adapter made for application queries. */
function adaptForEngine(adapter: SqlDriverAdapter, pool: pg.Pool): SqlDriverAdapter {
  // It would split a script at every semicolon, also in function bodies. PostgreSQL takes the script as it is.
  adapter.executeScript = async (script) => {
    await pool.query(script);
  };
  // The engine locks per session, which a pooler gives to others in between: each migration is in a transaction.
  const executeRaw = adapter.executeRaw.bind(adapter);
  adapter.executeRaw = (query) => executeRaw({ ...query, sql: query.sql.replace(SESSION_LOCK, "pg_advisory_xact_lock(") });
  // It lacks the type "char", which the catalogs use for kinds of constraints.
  const queryRaw = adapter.queryRaw.bind(adapter);
  adapter.queryRaw = async (query) => {
    const result = await queryRaw({ ...query, sql: query.sql.replace(CHAR_EXPRESSIONS, "$&::text") });
    const columnTypes = result.columnTypes.map((type, column) =>
      CHAR_COLUMNS.has(result.columnNames[column] ?? "") ? ColumnTypeEnum.Character : type,
    );
    return { ...result, columnTypes };
  };
  return adapter;
}

async function instantiate(): Promise<void> {
  const directory = dirname(createRequire(import.meta.url).resolve(ENGINE_MODULE));
  const code = await readFile(join(directory, "schema_engine_bg.wasm"));
  const { instance } = await WebAssembly.instantiate(code, { "./schema_engine_bg.js": engineModule });
  const { __wbindgen_start: start } = instance.exports;
  if (typeof start !== "function") throw new Error("The schema engine's WebAssembly has no start function.");
  engineModule.__wbg_set_wasm(instance.exports);
  start();
}
