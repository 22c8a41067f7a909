-- Deletes the leases of dead processes, and those of `process` that it does not know, unless they were used just now. Returns their number.
CREATE OR REPLACE FUNCTION credit_lease_reclaim(process uuid, known uuid[], dead_after_seconds integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  dead   uuid[];
  gone   integer;
BEGIN
  dead := ARRAY(
    SELECT l.id FROM credit_lease l LEFT JOIN gateway_process p ON p.id = l.process_id
    WHERE p.id IS NULL OR p.heartbeat_at < now() - make_interval(secs => dead_after_seconds)
      OR (l.process_id = process AND l.id <> ALL (known) AND l.sized_at < now() - make_interval(secs => dead_after_seconds)));
  IF cardinality(dead) = 0 THEN
    RETURN 0;
  END IF;
  PERFORM 1 FROM account a WHERE a.id IN (SELECT l.account_id FROM credit_lease l WHERE l.id = ANY (dead)) ORDER BY a.id FOR NO KEY UPDATE;
  DELETE FROM credit_lease l WHERE l.id = ANY (dead);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$$;
