/** A long history of generations, written straight into the tables. */
import type { Pool } from "pg";

const ROWS_PER_STATEMENT = 10_000;

/**
 * Gives the owner `rows` usage rows, spread evenly over the last `days` days, over ten models, paid from the pack; with the roll-up that
 * charges would have written, and without postings: nothing that is measured reads them.
 */
export async function seedUsage(pool: Pool, { rows, days }: { readonly rows: number; readonly days: number }): Promise<void> {
  for (let from = 0; from < rows; from += ROWS_PER_STATEMENT) {
    await pool.query(INSERT_ROWS, [from, Math.min(from + ROWS_PER_STATEMENT, rows) - 1, rows, days]);
  }
  await pool.query(INSERT_DAILY);
  await pool.query("ANALYZE usage_record");
  await pool.query("ANALYZE usage_daily");
}

/** Ids are of version 7, as the gateway makes them: the time first, so that new rows go to one end of each index. */
const INSERT_ROWS = `
INSERT INTO usage_record (id, account_id, api_key_id, api_key_name, api_key_type, timestamp, modality, model, model_used, meter_source,
    input_text_tokens, output_text_tokens, cost_nanocredits, response_time_ms, time_to_first_token_ms, status, usage_source)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(made.hash, 1, 3) || '8' || substr(made.hash, 4, 15))::uuid,
    owner.id, key.id, key.name, key.type, at, 'text', 'acme/model-' || n % 10, 'acme/model-' || n % 10, 'pack',
    100 + n % 900, 50 + n % 450, 1000 + n % 100000, 400 + n % 2000, 80 + n % 300, 'ok', 'provider'
FROM account owner
JOIN api_key key ON key.account_id = owner.id
CROSS JOIN LATERAL (
  SELECT n, md5(n::text) AS hash, date_trunc('milliseconds', now() - make_interval(secs => ($3::int - n - 0.5) * ($4::int * 86400.0 / $3::int))) AS at
  FROM generate_series($1::int, $2::int) AS n
) AS made
WHERE owner.handle = 'owner'`;

const INSERT_DAILY = `
INSERT INTO usage_daily (account_id, day, model, meter_source, requests, cost_nanocredits)
SELECT account_id, (timestamp AT TIME ZONE 'UTC')::date, model, meter_source, count(*), sum(cost_nanocredits)
FROM usage_record GROUP BY 1, 2, 3, 4`;
