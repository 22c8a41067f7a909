-- AlterTable
ALTER TABLE "usage_limit" ALTER COLUMN "account_id" DROP NOT NULL;

-- CreateTable
CREATE TABLE "usage_limit_use" (
    "limit_id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "amount" BIGINT NOT NULL,

    CONSTRAINT "usage_limit_use_pkey" PRIMARY KEY ("limit_id","at")
);

-- AddForeignKey
ALTER TABLE "usage_limit_use" ADD CONSTRAINT "usage_limit_use_limit_id_fkey" FOREIGN KEY ("limit_id") REFERENCES "usage_limit"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "usage_limit" ADD CONSTRAINT "usage_limit_of_model_check"
  CHECK ("account_id" IS NOT NULL OR ("api_key_id" IS NULL AND "model" IS NOT NULL AND "metric" <> 'credits'));

-- Processes of the version before call the new one, whose last parameter has a default.
DROP FUNCTION usage_limit_claim(uuid,timestamp with time zone,integer,uuid[],bigint[],bigint[],bigint[],bigint[]);

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

-- What a limit's usage rows and uses (usage_limit_use) after `since` sum up to: nanocredits, tokens or requests. Long windows read the roll-ups
-- (usage_roll) for their whole hours and days, and usage rows for the rest. A limit of all accounts has uses only.
CREATE OR REPLACE FUNCTION usage_limit_spent(of_limit usage_limit, since timestamptz, at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
-- Uses the indexes by time. Without statistics the planner would choose other plans.
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
  keys        uuid[] := CASE WHEN of_limit.api_key_id IS NOT NULL THEN ARRAY(SELECT k.id FROM api_key k WHERE k.account_id = of_limit.account_id
                     AND (k.id = of_limit.api_key_id OR of_limit.api_key_id = ANY (k.ancestor_ids))) END;
  whole_hours timestamptz := date_trunc('hour', since + interval '1 hour', 'UTC');
  whole_days  timestamptz := date_trunc('day', whole_hours + interval '1 day' - interval '1 microsecond', 'UTC');
  grouped_by  smallint := CASE WHEN of_limit.api_key_id IS NULL THEN 0 ELSE 1 END + CASE WHEN of_limit.model IS NULL THEN 0 ELSE 2 END;
  used        bigint;
  result      bigint;
BEGIN
  IF since IS NULL THEN
    RETURN 0;
  END IF;
  SELECT coalesce(sum(s.amount), 0) INTO used FROM usage_limit_use s WHERE s.limit_id = of_limit.id AND s.at > since;
  IF of_limit.account_id IS NULL THEN
    RETURN used;
  END IF;
  IF since > at - interval '2 hours' THEN
    whole_hours := 'infinity';
  END IF;
  SELECT sum(CASE of_limit.metric WHEN 'credits' THEN r.cost WHEN 'tokens' THEN r.tokens ELSE r.requests END) INTO result FROM (
    SELECT u.cost_nanocredits AS cost, u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens
        + u.input_image_tokens + u.output_text_tokens + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens AS tokens, 1 AS requests
      FROM usage_record u
      WHERE keys IS NULL AND u.account_id = of_limit.account_id AND u.timestamp > since AND u.timestamp < whole_hours
        AND (of_limit.model IS NULL OR u.model = of_limit.model)
    UNION ALL
    SELECT u.cost_nanocredits, u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens
        + u.input_image_tokens + u.output_text_tokens + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens, 1
      FROM unnest(keys) AS k(id) CROSS JOIN LATERAL (SELECT * FROM usage_record u
        WHERE u.api_key_id = k.id AND u.timestamp > since AND u.timestamp < whole_hours AND (of_limit.model IS NULL OR u.model = of_limit.model)) u
    UNION ALL
    SELECT h.cost_nanocredits, h.input_tokens + h.output_tokens, h.requests
      FROM usage_hour_rollup h
      WHERE h.account_id = of_limit.account_id AND h.level = grouped_by AND h.start >= whole_hours AND h.start < whole_days AND whole_hours <> 'infinity'
        AND (keys IS NULL OR h.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR h.model = of_limit.model)
        AND h.outcome IN ('ok', 'cancelled')
    UNION ALL
    SELECT d.cost_nanocredits, d.input_tokens + d.output_tokens, d.requests
      FROM usage_day_rollup d
      WHERE d.account_id = of_limit.account_id AND d.level = grouped_by AND d.start >= whole_days AND whole_hours <> 'infinity'
        AND (keys IS NULL OR d.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR d.model = of_limit.model)
        AND d.outcome IN ('ok', 'cancelled')
    UNION ALL
    SELECT e.requests * e.cost_nanocredits, e.requests * (e.input_tokens + e.output_tokens), e.requests
      FROM usage_unrolled() e
      WHERE whole_hours <> 'infinity' AND e.account_id = of_limit.account_id AND e.at >= whole_hours
        AND (keys IS NULL OR e.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR e.model = of_limit.model)
        AND e.outcome IN ('ok', 'cancelled')
  ) r;
  RETURN coalesce(result, 0) + used;
END
$$;

-- Counts an amount of the window after `since` against a limit, beside its usage rows. A calendar window has one row; a rolling one has 60, of whose
-- parts an amount leaves with the last: it counts up to a sixtieth of the window too long.
CREATE OR REPLACE FUNCTION usage_limit_use(of_limit usage_limit, since timestamptz, now timestamptz, used bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  part double precision := greatest(extract(epoch FROM now - since) / 60, 1);
  slot timestamptz := CASE WHEN of_limit.is_rolling THEN to_timestamp(ceil(extract(epoch FROM now) / part) * part) ELSE since END;
BEGIN
  -- A minute, as another process may have a slower clock.
  DELETE FROM usage_limit_use s WHERE s.limit_id = of_limit.id AND s.at < since - interval '1 minute';
  INSERT INTO usage_limit_use AS s (limit_id, at, amount) VALUES (of_limit.id, date_trunc('milliseconds', slot + interval '1 millisecond'), used)
    ON CONFLICT (limit_id, at) DO UPDATE SET amount = s.amount + excluded.amount;
END
$$;
