-- Takes back earnings of a payer's charges that have not matured, of the newest charges that drew `sold` sold credits in all; null: of all.
-- `of_earner`: only what that account earned. Once for each id. Returns the amount that was taken back.
CREATE OR REPLACE FUNCTION credit_reverse_earnings(booking_id uuid, of_payer uuid, of_earner uuid, sold bigint, booking_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  total bigint;
BEGIN
  PERFORM 1 FROM account WHERE account.id = of_payer FOR NO KEY UPDATE;
  IF NOT EXISTS (SELECT FROM ledger_entry l WHERE l.transaction_id = booking_id) THEN
    -- In the order of all writers of these rows.
    PERFORM 1 FROM earning_daily d
      WHERE d.matured_at IS NULL AND (d.account_id, d.day, d.kind, d.source) IN (
        SELECT r.account_id, r.day, r.kind, r.source FROM earning r
        WHERE r.payer_id = of_payer AND r.day >= (now() AT TIME ZONE 'UTC')::date - 8 AND (of_earner IS NULL OR r.account_id = of_earner))
      ORDER BY d.account_id, d.kind, d.source, d.day FOR NO KEY UPDATE;

    WITH open AS (
      SELECT r.* FROM earning r
      JOIN earning_daily d ON d.account_id = r.account_id AND d.day = r.day AND d.kind = r.kind AND d.source = r.source AND d.matured_at IS NULL
      WHERE r.payer_id = of_payer AND r.day >= (now() AT TIME ZONE 'UTC')::date - 8 AND (of_earner IS NULL OR r.account_id = of_earner)
        AND CASE WHEN sold IS NULL THEN r.nanocredits > r.reversed_nanocredits ELSE r.nanocredits > 0 AND r.sold_nanocredits > r.refunded_nanocredits END
    ), charge AS (
      -- Credits that were drawn and not refunded.
      SELECT o.generation_id, max(o.sold_nanocredits - o.refunded_nanocredits) AS remaining,
             sum(max(o.sold_nanocredits - o.refunded_nanocredits)) OVER (ORDER BY max(o.created_at) DESC, o.generation_id DESC)
               - max(o.sold_nanocredits - o.refunded_nanocredits) AS newer
      FROM open o GROUP BY o.generation_id
    ), refund AS (
      SELECT o.*, least(o.sold_nanocredits, o.refunded_nanocredits + CASE WHEN sold IS NULL THEN c.remaining ELSE least(c.remaining, sold - c.newer) END) AS refunded
      FROM open o JOIN charge c ON c.generation_id = o.generation_id
      WHERE sold IS NULL OR c.newer < sold
    ), part AS (
      -- Rounded up of all refunds together, so that many take back what one does.
      SELECT f.generation_id, f.account_id, f.day, f.kind, f.source, f.refunded::bigint AS refunded,
             greatest(0, CASE WHEN sold IS NULL THEN f.nanocredits ELSE ceil(f.nanocredits::numeric * f.refunded / f.sold_nanocredits) END - f.reversed_nanocredits)::bigint AS amount
      FROM refund f
    ), reversed AS (
      UPDATE earning r SET reversed_nanocredits = r.reversed_nanocredits + p.amount, refunded_nanocredits = p.refunded
      FROM part p WHERE r.generation_id = p.generation_id AND r.kind = p.kind
    ), days AS (
      UPDATE earning_daily d SET nanocredits = d.nanocredits - s.amount, reversed_nanocredits = d.reversed_nanocredits + s.amount
      FROM (SELECT p.account_id, p.day, p.kind, p.source, sum(p.amount)::bigint AS amount FROM part p GROUP BY 1, 2, 3, 4) s
      WHERE d.account_id = s.account_id AND d.day = s.day AND d.kind = s.kind AND d.source = s.source
    )
    INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
      SELECT booking_id, row_number() OVER (ORDER BY p.account_id), p.account_id, 'earnings'::"LedgerBook", 'clawback'::"LedgerKind", -sum(p.amount), booking_note FROM part p GROUP BY p.account_id HAVING sum(p.amount) > 0
      UNION ALL
      SELECT booking_id, 0, of_payer, 'write_off'::"LedgerBook", 'clawback'::"LedgerKind", sum(p.amount), booking_note FROM part p HAVING sum(p.amount) > 0;
  END IF;
  SELECT coalesce(sum(l.amount_nanocredits), 0) INTO total FROM ledger_entry l WHERE l.transaction_id = booking_id AND l.book = 'write_off';
  RETURN total;
END
$$;
