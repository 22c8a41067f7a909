/**
 * The invariants of the books, each a query that must find nothing. Run after every test that moves money, and by the fault
 * harness.
 */
import type pg from "pg";

const NO_KEY = "'00000000-0000-0000-0000-000000000000'::uuid";
const ROLLED = "requests, cost_nanocredits, input_tokens, output_tokens, response_times, first_token_times";

/** Rows of `source`, one for each hour, as each roll-up at each level has them. */
function rolledUp(source: string): string {
  return `
    SELECT unit, account_id, level + CASE unit WHEN 'week' THEN 4 ELSE 0 END AS level, date_trunc(unit, hour, 'UTC') AS start, CASE WHEN level & 1 = 0 THEN ${NO_KEY} ELSE coalesce(api_key_id, ${NO_KEY}) END AS api_key_id,
           CASE WHEN level & 2 = 0 THEN '' ELSE model END AS model, modality, outcome, ${ROLLED}
    FROM (${source}) one CROSS JOIN (VALUES ('hour'), ('day'), ('week')) u(unit) CROSS JOIN generate_series(0, 3) l(level)`;
}

const UNROLLED = `
  SELECT date_trunc('hour', at, 'UTC') AS hour, account_id, api_key_id, model, modality, outcome, requests::numeric, requests::numeric * cost_nanocredits AS cost_nanocredits,
         requests::numeric * input_tokens AS input_tokens, requests::numeric * output_tokens AS output_tokens, coalesce(requests * usage_time_digit(response_time_ms), 0) AS response_times,
         coalesce(requests * usage_time_digit(time_to_first_token_ms), 0) AS first_token_times FROM usage_unrolled()`;

const USAGE_ROWS = `
  SELECT date_trunc('hour', timestamp, 'UTC') AS hour, account_id, api_key_id, model, modality, status::text::"UsageOutcome" AS outcome, 1::numeric AS requests, cost_nanocredits::numeric,
         input_text_tokens::numeric + input_cached_tokens + input_cache_write_tokens + input_audio_tokens + input_image_tokens AS input_tokens,
         output_text_tokens::numeric + output_reasoning_tokens + output_audio_tokens + output_image_tokens AS output_tokens,
         usage_time_digit(response_time_ms) AS response_times, coalesce(usage_time_digit(time_to_first_token_ms), 0) AS first_token_times FROM usage_record`;

/** Credits in holds and leases. */
const HELD = `
  SELECT account_id, api_key_id, tier_nanocredits AS tier, crypto_nanocredits AS crypto, pack_nanocredits AS pack, 0 AS paid FROM hold
  UNION ALL SELECT account_id, api_key_id, tier_nanocredits + tier_paid_nanocredits, crypto_nanocredits + crypto_paid_nanocredits,
    pack_nanocredits + pack_paid_nanocredits, tier_paid_nanocredits + crypto_paid_nanocredits + pack_paid_nanocredits FROM credit_lease`;

export const INVARIANTS: Readonly<Record<string, string>> = {
  "I1 a bucket is the sum of its ledger entries": `
    SELECT a.id, b.book, b.amount, coalesce(l.amount, 0) AS ledger FROM account a
    CROSS JOIN LATERAL (VALUES ('tier'::"LedgerBook", a.tier_nanocredits), ('crypto', a.crypto_nanocredits), ('pack', a.pack_nanocredits)) b(book, amount)
    LEFT JOIN (SELECT account_id, book, sum(amount_nanocredits) AS amount FROM ledger_entry GROUP BY 1, 2) l ON l.account_id = a.id AND l.book = b.book
    LEFT JOIN (SELECT account_id, p.book, sum(p.amount) AS amount FROM credit_lease
               CROSS JOIN LATERAL (VALUES ('tier'::"LedgerBook", tier_paid_nanocredits), ('crypto', crypto_paid_nanocredits), ('pack', pack_paid_nanocredits)) p(book, amount)
               GROUP BY 1, 2) p ON p.account_id = a.id AND p.book = b.book
    WHERE b.amount - coalesce(p.amount, 0) <> coalesce(l.amount, 0)`,
  "I2 what is held of a bucket is the sum of its open holds and of its leases, what they have paid included": `
    SELECT a.id FROM account a
    LEFT JOIN (SELECT account_id, sum(tier) AS tier, sum(crypto) AS crypto, sum(pack) AS pack FROM (${HELD}) o GROUP BY 1) h ON h.account_id = a.id
    WHERE (a.tier_held_nanocredits, a.crypto_held_nanocredits, a.pack_held_nanocredits)
      IS DISTINCT FROM (coalesce(h.tier, 0)::bigint, coalesce(h.crypto, 0)::bigint, coalesce(h.pack, 0)::bigint)`,
  "I3 a key's spent and held agree with the usage and holds of it and of all that descend from it, within its budget": `
    SELECT k.id FROM api_key k
    LEFT JOIN (SELECT l.id, sum(h.tier + h.crypto + h.pack) AS amount, sum(h.paid) AS paid FROM (${HELD}) h
               JOIN api_key d ON d.id = h.api_key_id CROSS JOIN unnest(d.id || d.ancestor_ids) AS l(id) GROUP BY 1) h ON h.id = k.id
    LEFT JOIN (SELECT l.id, sum(u.cost_nanocredits) AS amount FROM usage_record u
               JOIN api_key d ON d.id = u.api_key_id CROSS JOIN unnest(d.id || d.ancestor_ids) AS l(id) GROUP BY 1) u ON u.id = k.id
    WHERE k.held_nanocredits <> coalesce(h.amount, 0) OR k.spent_nanocredits + coalesce(h.paid, 0) <> coalesce(u.amount, 0)
      OR k.spent_nanocredits + k.held_nanocredits > k.budget_nanocredits`,
  "I14 a key descends from its parent and from what that descends from, all of its account": `
    SELECT k.id FROM api_key k LEFT JOIN api_key p ON p.id = k.parent_id
    WHERE k.ancestor_ids IS DISTINCT FROM CASE WHEN k.parent_id IS NULL THEN '{}' ELSE p.ancestor_ids || p.id END OR p.account_id <> k.account_id`,
  "I4 no bucket less what is held of it is negative": `
    SELECT id FROM account WHERE least(tier_nanocredits - tier_held_nanocredits, crypto_nanocredits - crypto_held_nanocredits,
      pack_nanocredits - pack_held_nanocredits, tier_held_nanocredits, crypto_held_nanocredits, pack_held_nanocredits) < 0`,
  "I5 no hold is long expired": `SELECT id FROM hold WHERE expires_at < now() - interval '2 minutes'`,
  "I6 a usage row's cost is what the account's buckets paid for it, and every charge has its usage row": `
    SELECT coalesce(u.id, c.transaction_id) AS id, u.cost_nanocredits, c.paid FROM usage_record u
    FULL JOIN (SELECT transaction_id, coalesce(-sum(amount_nanocredits) FILTER (WHERE book IN ('tier', 'crypto', 'pack')), 0) AS paid
               FROM ledger_entry WHERE kind = 'charge' GROUP BY 1) c ON c.transaction_id = u.id
    WHERE u.id IS NULL OR u.cost_nanocredits <> coalesce(c.paid, 0)`,
  "I16 no lease is below zero in any bucket": `
    SELECT id FROM credit_lease WHERE least(tier_nanocredits, crypto_nanocredits, pack_nanocredits, tier_paid_nanocredits, crypto_paid_nanocredits, pack_paid_nanocredits) < 0`,
  "I17 a process that does not live has no lease": `
    SELECT l.id FROM credit_lease l LEFT JOIN gateway_process p ON p.id = l.process_id
    WHERE l.sized_at < now() - interval '2 minutes' AND (p.id IS NULL OR p.heartbeat_at < now() - interval '2 minutes')`,
  "I7 nothing is both held and charged": `SELECT h.id FROM hold h JOIN usage_record u ON u.id = h.id`,
  "I8 the entries of a transaction sum to zero": `SELECT transaction_id FROM ledger_entry GROUP BY 1 HAVING sum(amount_nanocredits) <> 0`,
  "I9 the daily roll-up is the sum of the usage rows": `
    SELECT * FROM (SELECT account_id, day, model, meter_source, requests::bigint, cost_nanocredits::numeric FROM usage_daily) d
    FULL JOIN (SELECT account_id, (timestamp AT TIME ZONE 'UTC')::date AS day, model, meter_source, count(*) AS requests, sum(cost_nanocredits) AS cost
               FROM usage_record GROUP BY 1, 2, 3, 4) u USING (account_id, day, model, meter_source)
    WHERE d.requests IS DISTINCT FROM u.requests OR d.cost_nanocredits IS DISTINCT FROM u.cost`,
  "I11 an app's daily roll-up is the sum of the usage rows of the keys that were granted to it": `
    SELECT * FROM (SELECT app_key_id, day, model, requests::bigint, cost_nanocredits::numeric FROM app_usage_daily) d
    FULL JOIN (SELECT k.app_key_id, (r.timestamp AT TIME ZONE 'UTC')::date AS day, r.model, count(*) AS requests, sum(r.cost_nanocredits) AS cost
               FROM usage_record r JOIN api_key k ON k.id = r.api_key_id WHERE k.app_key_id IS NOT NULL GROUP BY 1, 2, 3) u USING (app_key_id, day, model)
    WHERE d.requests IS DISTINCT FROM u.requests OR d.cost_nanocredits IS DISTINCT FROM u.cost`,
  "I15 the roll-ups by hour and by day, and what is not rolled up yet, are the usage rows": `
    SELECT * FROM (
      SELECT unit, account_id, level, start, api_key_id, model, modality, outcome, sum(requests) AS requests, sum(cost_nanocredits) AS cost, sum(input_tokens) AS input,
             sum(output_tokens) AS output, sum(response_times) AS response_times, sum(first_token_times) AS first_token_times, true AS is_row
      FROM (${rolledUp(USAGE_ROWS)}) r GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) r
    FULL JOIN (
      SELECT unit, account_id, level, start, api_key_id, model, modality, outcome, sum(requests) AS requests, sum(cost_nanocredits) AS cost, sum(input_tokens) AS input,
             sum(output_tokens) AS output, sum(response_times) AS response_times, sum(first_token_times) AS first_token_times
      FROM (SELECT 'hour' AS unit, account_id, level, start, api_key_id, model, modality, outcome, ${ROLLED} FROM usage_hour_rollup
            UNION ALL SELECT CASE WHEN level & 4 = 0 THEN 'day' ELSE 'week' END, account_id, level, start, api_key_id, model, modality, outcome, ${ROLLED} FROM usage_day_rollup
            UNION ALL ${rolledUp(UNROLLED)}) s WHERE outcome <> 'failed' GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) s
    USING (unit, account_id, level, start, api_key_id, model, modality, outcome)
    WHERE (coalesce(r.requests, 0), coalesce(r.cost, 0), coalesce(r.input, 0), coalesce(r.output, 0), coalesce(r.response_times, 0), coalesce(r.first_token_times, 0))
      IS DISTINCT FROM (coalesce(s.requests, 0), coalesce(s.cost, 0), coalesce(s.input, 0), coalesce(s.output, 0), coalesce(s.response_times, 0), coalesce(s.first_token_times, 0))`,
  "I12 a transaction is of one kind and of one account, but for the shares of owners": `
    SELECT transaction_id FROM ledger_entry GROUP BY 1
    HAVING count(DISTINCT kind) > 1 OR count(DISTINCT account_id) FILTER (WHERE book <> 'earnings') > 1`,
  "I13 a refill is what the tier bucket gained or lost, issued for it": `
    SELECT transaction_id FROM ledger_entry WHERE kind = 'refill' GROUP BY 1
    HAVING array_agg(book ORDER BY line) <> ARRAY['tier', 'issued']::"LedgerBook"[] OR bool_or(amount_nanocredits = 0)`,
  "I18 a deleted account has no name, nothing to act by, and in the end no credits": `
    SELECT a.id FROM account_deletion d JOIN account a ON a.id = d.account_id
    WHERE num_nonnulls(a.email, a.name, a.image, a.github_username, a.tier, a.low_balance_nanocredits) > 0 OR a.handle NOT LIKE 'deleted-%'
      OR EXISTS (SELECT FROM api_key k WHERE k.account_id = a.id AND (k.revoked_at IS NULL OR k.name <> ''))
      OR EXISTS (SELECT FROM session s WHERE s.account_id = a.id) OR EXISTS (SELECT FROM sign_in_method m WHERE m.account_id = a.id)
      OR EXISTS (SELECT FROM webhook_endpoint w WHERE w.account_id = a.id) OR EXISTS (SELECT FROM community_model c WHERE c.account_id = a.id)
      OR d.finished_at IS NOT NULL AND (a.tier_nanocredits + a.crypto_nanocredits + a.pack_nanocredits + a.earned_nanocredits <> 0
        OR EXISTS (SELECT FROM usage_record u WHERE u.account_id = a.id AND u.api_key_name IS NOT NULL))`,
  "I20 a paid top-up has its purchase, and each refund and dispute its entries, which sum up to what the top-up has lost": `
    SELECT t.id FROM top_up t
    LEFT JOIN (SELECT transaction_id, sum(amount_nanocredits) AS amount FROM ledger_entry WHERE kind = 'purchase' AND book = 'cash' GROUP BY 1) p ON p.transaction_id = t.id
    WHERE coalesce(-p.amount, 0) <> CASE t.status WHEN 'paid' THEN t.nanocredits ELSE 0 END
    UNION ALL
    SELECT coalesce(r.id, l.transaction_id) FROM (SELECT id, CASE WHEN kind IN ('refund', 'dispute') THEN 1 ELSE -1 END AS sign, nanocredits, moved_nanocredits FROM top_up_reversal) r
    FULL JOIN (SELECT transaction_id, sum(amount_nanocredits) FILTER (WHERE book = 'cash') AS amount,
                 coalesce(sum(amount_nanocredits) FILTER (WHERE book IN ('crypto', 'pack')), 0) AS moved
               FROM ledger_entry WHERE kind = 'refund' GROUP BY 1) l ON l.transaction_id = r.id
    WHERE (r.sign * r.nanocredits, -r.sign * r.moved_nanocredits) IS DISTINCT FROM (l.amount, l.moved)
    UNION ALL
    SELECT t.id FROM top_up t
    LEFT JOIN (SELECT top_up_id, sum(CASE kind WHEN 'refund' THEN amount_cents WHEN 'refund_failed' THEN -amount_cents ELSE 0 END) AS refunded,
                 sum(CASE kind WHEN 'dispute' THEN amount_cents WHEN 'dispute_won' THEN -amount_cents ELSE 0 END) AS disputed
               FROM top_up_reversal GROUP BY 1) r ON r.top_up_id = t.id
    WHERE t.refunded_cents <> coalesce(r.refunded, 0) OR t.disputed_cents <> coalesce(r.disputed, 0)`,
  "I21 the debt to an account is the earnings that were neither taken back, converted nor paid out": `
    SELECT a.id, coalesce(l.amount, 0) AS ledger, a.earned_nanocredits, coalesce(d.amount, 0) AS open FROM account a
    LEFT JOIN (SELECT account_id, sum(amount_nanocredits) AS amount FROM ledger_entry WHERE book = 'earnings' GROUP BY 1) l ON l.account_id = a.id
    LEFT JOIN (SELECT account_id, sum(nanocredits) AS amount FROM earning_daily WHERE matured_at IS NULL GROUP BY 1) d ON d.account_id = a.id
    WHERE coalesce(l.amount, 0) <> a.earned_nanocredits + coalesce(d.amount, 0)`,
  "I22 a share is what the ledger of its charge has for it, and the days of an owner are the sum of the shares": `
    SELECT coalesce(e.generation_id, l.transaction_id)::text AS id FROM (SELECT generation_id, sum(nanocredits) AS amount FROM earning GROUP BY 1) e
    FULL JOIN (SELECT transaction_id, sum(amount_nanocredits) AS amount FROM ledger_entry WHERE book = 'earnings' AND kind = 'charge' GROUP BY 1) l
      ON l.transaction_id = e.generation_id WHERE e.amount IS DISTINCT FROM l.amount
    UNION ALL
    SELECT coalesce(e.account_id, d.account_id)::text FROM
      (SELECT account_id, kind, source, sum(nanocredits - reversed_nanocredits) AS amount, sum(reversed_nanocredits) AS reversed, count(*) AS requests FROM earning GROUP BY 1, 2, 3) e
    FULL JOIN (SELECT account_id, kind, source, sum(nanocredits) AS amount, sum(reversed_nanocredits) AS reversed, sum(requests) AS requests FROM earning_daily GROUP BY 1, 2, 3) d
      USING (account_id, kind, source) WHERE (e.amount, e.reversed, e.requests) IS DISTINCT FROM (d.amount, d.reversed, d.requests)`,
  "I23 no account earns from itself, nor more than the sold credits of a charge": `
    SELECT generation_id FROM earning e JOIN usage_record u ON u.id = e.generation_id GROUP BY 1
    HAVING bool_or(e.account_id = e.payer_id) OR sum(e.nanocredits) > max(e.sold_nanocredits) OR max(e.sold_nanocredits) > max(u.cost_nanocredits)`,
  "I24 the charges that others earn from drew no more sold credits than were sold": `
    SELECT e.payer_id FROM (SELECT payer_id, sum(sold) AS sold FROM (SELECT payer_id, generation_id, max(sold_nanocredits) AS sold FROM earning GROUP BY 1, 2) c GROUP BY 1) e
    LEFT JOIN (SELECT account_id, sum(amount_nanocredits) AS sold FROM ledger_entry WHERE kind = 'purchase' AND book IN ('crypto', 'pack') GROUP BY 1) p ON p.account_id = e.payer_id
    WHERE e.sold > coalesce(p.sold, 0)`,
  "I25 no more of a bucket was sold, or is of grants that expire, than there was of it": `
    SELECT a.id FROM account a
    LEFT JOIN (SELECT account_id, sum(left_nanocredits) FILTER (WHERE bucket = 'crypto') AS crypto, sum(left_nanocredits) FILTER (WHERE bucket = 'pack') AS pack
               FROM expiring_grant GROUP BY 1) g ON g.account_id = a.id
    WHERE a.crypto_sold_nanocredits + coalesce(g.crypto, 0) > a.crypto_marked_nanocredits OR a.pack_sold_nanocredits + coalesce(g.pack, 0) > a.pack_marked_nanocredits`,
  "I26 an app's margin is a part of the cost, and no less than what its owner earned": `
    SELECT u.id FROM usage_record u LEFT JOIN earning e ON e.generation_id = u.id AND e.kind = 'app'
    WHERE u.app_margin_nanocredits > u.cost_nanocredits OR e.nanocredits > u.app_margin_nanocredits`,
  "I19 what is forfeited goes from the buckets back to where credits are issued": `
    SELECT transaction_id FROM ledger_entry WHERE kind = 'forfeit' GROUP BY 1
    HAVING count(*) FILTER (WHERE book = 'issued' AND amount_nanocredits > 0) <> 1 OR bool_or(book <> 'issued' AND amount_nanocredits >= 0)`,
};

const NOTHING_HELD = "nothing is held when nothing is under way";

/** The rows that break each invariant, by its name; empty when the books are right. */
export async function findBrokenInvariants(pool: pg.Pool, options: { readonly isIdle?: boolean } = {}): Promise<Record<string, unknown[]>> {
  const broken: Record<string, unknown[]> = {};
  const checks = options.isIdle ? { ...INVARIANTS, [NOTHING_HELD]: "SELECT id FROM hold" } : INVARIANTS;
  for (const [name, query] of Object.entries(checks)) {
    const { rows } = await pool.query(query);
    if (rows.length > 0) broken[name] = rows;
  }
  return broken;
}

/** I10: the generations of `ids`, each of which a client had received in full, that have no usage row. */
export async function findUnbilled(pool: pg.Pool, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    "SELECT a.id::text FROM unnest($1::uuid[]) AS a(id) LEFT JOIN usage_record u ON u.id = a.id WHERE u.id IS NULL",
    [ids],
  );
  return rows.map((row) => row.id);
}
