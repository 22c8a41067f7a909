-- Sets the amounts that a process may still charge against limits (docs/decisions/usage-limits.md). It must keep `keeps` of each, of which its
-- generations hold `helds`; `waits` is the least that it wants beside that, and `rooms` the most. `useds` were used since its last claim and have
-- no usage rows: they are counted in usage_limit_use. Locks the limits in the order of their ids.
-- Returns a row for each limit that exists: the amount granted beside `keeps`, the amount in force, the sum of the window's usage rows, the
-- claims of other processes, the part of them that no generation held when they last wrote it, and when the first of them did (`oldest`).
-- `renews`: when more may be there. `raised`: when the raise ends.
CREATE OR REPLACE FUNCTION usage_limit_claim(
  process uuid, at timestamptz, dead_seconds integer, ids uuid[], keeps bigint[], helds bigint[], waits bigint[], rooms bigint[],
  useds bigint[] DEFAULT NULL
) RETURNS TABLE (id uuid, granted bigint, size bigint, spent bigint, claimed bigint, idle bigint, oldest timestamptz, looked timestamptz,
  renews timestamptz, raised timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  l         usage_limit%ROWTYPE;
  asked     record;
  other     record;
  w         record;
  left_over bigint;
  held_dead bigint;
BEGIN
  FOR l IN SELECT * FROM usage_limit u WHERE u.id = ANY (ids) ORDER BY u.id FOR NO KEY UPDATE LOOP
    SELECT o.* INTO asked FROM unnest(ids, keeps, helds, waits, rooms, useds) AS o(id, keeps, held, wait, room, used) WHERE o.id = l.id;
    id := l.id;
    raised := CASE WHEN l.raise_until > at THEN l.raise_until END;
    size := l.amount + CASE WHEN raised IS NULL THEN 0 ELSE l.raise_amount END;
    SELECT * INTO w FROM usage_limit_window(l.period, l.minutes, l.is_rolling, l.time_zone, at);
    IF w.since IS NOT NULL AND asked.used > 0 THEN
      PERFORM usage_limit_use(l, w.since, at, asked.used);
    END IF;
    -- A statement of its own, so that it sees all commits from before the limit was locked.
    spent := usage_limit_spent(l, w.since, at);
    claimed := 0;
    idle := 0;
    oldest := NULL;
    looked := clock_timestamp();
    FOR other IN
      SELECT c.process_id, c.amount, c.held, c.sized_at, p.id IS NOT NULL AS is_alive FROM usage_limit_claim c
      LEFT JOIN gateway_process p ON p.id = c.process_id AND p.heartbeat_at >= now() - make_interval(secs => dead_seconds)
      WHERE c.limit_id = l.id AND c.process_id <> process
    LOOP
      IF other.is_alive THEN
        claimed := claimed + other.amount;
        idle := idle + other.amount - other.held;
        oldest := least(oldest, other.sized_at);
        CONTINUE;
      END IF;
      -- Usage rows do not tell what a dead process has used of a limit of all accounts: all that it had claimed is taken for used.
      IF l.account_id IS NULL THEN
        IF w.since IS NOT NULL AND other.amount > 0 THEN
          PERFORM usage_limit_use(l, w.since, at, other.amount);
          spent := spent + other.amount;
        END IF;
        DELETE FROM usage_limit_claim c WHERE c.limit_id = l.id AND c.process_id = other.process_id;
        CONTINUE;
      END IF;
      -- Of a dead process only its holds may still be charged.
      SELECT CASE l.metric WHEN 'credits' THEN sum(h.tier_nanocredits + h.crypto_nanocredits + h.pack_nanocredits) WHEN 'tokens' THEN other.amount ELSE count(*) END
        INTO held_dead FROM hold h
        WHERE h.process_id = other.process_id AND h.account_id = l.account_id HAVING count(*) > 0;
      IF held_dead IS NULL THEN
        DELETE FROM usage_limit_claim c WHERE c.limit_id = l.id AND c.process_id = other.process_id;
      ELSE
        claimed := claimed + least(other.amount, held_dead);
      END IF;
    END LOOP;
    left_over := size - spent - claimed - asked.keeps;
    granted := CASE WHEN left_over <= 0 THEN 0
                    WHEN left_over <= asked.wait THEN left_over
                    ELSE least(left_over, greatest(asked.wait, least(asked.room, left_over / 4))) END;
    IF asked.wait = 0 AND asked.room = 0 THEN
      granted := 0;
    END IF;
    IF asked.keeps + granted = 0 THEN
      DELETE FROM usage_limit_claim c WHERE c.limit_id = l.id AND c.process_id = process;
    ELSE
      INSERT INTO usage_limit_claim AS c (limit_id, process_id, amount, held, sized_at) VALUES (l.id, process, asked.keeps + granted, asked.held, clock_timestamp())
        ON CONFLICT ON CONSTRAINT usage_limit_claim_pkey DO UPDATE SET amount = excluded.amount, held = excluded.held, sized_at = excluded.sized_at;
    END IF;
    renews := w.renews;
    IF l.is_rolling AND granted < asked.wait THEN
      renews := at + (coalesce((
        SELECT min(u.timestamp) FROM api_key k CROSS JOIN LATERAL (
          SELECT u.timestamp FROM usage_record u WHERE u.api_key_id = k.id AND u.timestamp > w.since AND (l.model IS NULL OR u.model = l.model)
          ORDER BY u.timestamp LIMIT 1) u
        WHERE l.api_key_id IS NOT NULL AND k.account_id = l.account_id AND (k.id = l.api_key_id OR l.api_key_id = ANY (k.ancestor_ids))
        UNION ALL
        (SELECT u.timestamp FROM usage_record u
          WHERE l.api_key_id IS NULL AND u.account_id = l.account_id AND u.timestamp > w.since AND (l.model IS NULL OR u.model = l.model)
          ORDER BY u.timestamp LIMIT 1)
        UNION ALL
        SELECT min(s.at) FROM usage_limit_use s WHERE s.limit_id = l.id AND s.at > w.since
        ORDER BY 1 LIMIT 1), at) - w.since);
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;
