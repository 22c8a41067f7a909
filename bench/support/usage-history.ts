/** A long history of generations, written straight into the tables. */
import type { Pool } from "pg";

const ROWS_PER_STATEMENT = 10_000;

export interface UsageHistory {
  readonly rows: number;
  readonly days: number;
  readonly keys?: number;
  readonly models?: number;
}

/**
 * Gives the owner `rows` usage rows, spread evenly over the last `days` days, over keys and models, paid from the pack; with the roll-ups, and without postings: nothing that is measured reads them.
 */
export async function seedUsage(pool: Pool, { rows, days, keys = 1, models = 10 }: UsageHistory): Promise<void> {
  await pool.query(INSERT_KEYS, [keys - 1]);
  for (let from = 0; from < rows; from += ROWS_PER_STATEMENT) {
    await pool.query(INSERT_ROWS, [from, Math.min(from + ROWS_PER_STATEMENT, rows) - 1, rows, days, keys, models]);
  }
  const rollUp = "SELECT is_behind FROM usage_roll($1)";
  while ((await pool.query(rollUp, [ROWS_PER_STATEMENT])).rows[0]?.is_behind);
  await pool.query(INSERT_DAILY);
  await pool.query("ANALYZE usage_record");
  await pool.query("ANALYZE usage_daily");
  await pool.query("ANALYZE usage_hour_rollup");
  await pool.query("ANALYZE usage_day_rollup");
}

/** Ids are of version 7, as the gateway makes them: the time first, so that new rows go to one end of each index. */
const INSERT_ROWS = `
INSERT INTO usage_record (id, account_id, api_key_id, api_key_name, api_key_type, timestamp, modality, model, model_used, meter_source,
    input_text_tokens, output_text_tokens, cost_nanocredits, response_time_ms, time_to_first_token_ms, status, usage_source)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(made.hash, 1, 3) || '8' || substr(made.hash, 4, 15))::uuid,
    owner.id, key.id, key.name, key.type, at, 'text', 'acme/model-' || n / 7 % $6::int, 'acme/model-' || n / 7 % $6::int, 'pack',
    100 + n % 900, 50 + n % 450, 1000 + n % 100000, 400 + n % 2000, 80 + n % 300, 'ok', 'provider'
FROM (SELECT k.*, row_number() OVER (ORDER BY k.id) - 1 AS number FROM api_key k JOIN account o ON o.id = k.account_id WHERE o.handle = 'owner' LIMIT $5::int) key
JOIN account owner ON owner.id = key.account_id
JOIN LATERAL (
  SELECT n, md5(n::text) AS hash, date_trunc('milliseconds', now() - make_interval(secs => ($3::int - n - 0.5) * ($4::int * 86400.0 / $3::int))) AS at
  FROM generate_series($1::int, $2::int) AS n
) AS made ON made.n * 31 / 11 % $5::int = key.number`;

const INSERT_KEYS = `
INSERT INTO api_key (id, account_id, hash, type, name, start)
SELECT gen_random_uuid(), owner.id, sha256(n::text::bytea), 'secret', 'key ' || n, 'sk_'
FROM account owner, generate_series(1, $1::int) n WHERE owner.handle = 'owner'`;

const INSERT_DAILY = `
INSERT INTO usage_daily (account_id, day, model, meter_source, requests, cost_nanocredits)
SELECT account_id, (timestamp AT TIME ZONE 'UTC')::date, model, meter_source, count(*), sum(cost_nanocredits)
FROM usage_record GROUP BY 1, 2, 3, 4`;
