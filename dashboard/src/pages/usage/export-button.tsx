import { Button, Group, Progress, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import type { UsageFilter } from "../../client/generated/graphql.js";
import { Failure } from "../../ui/states.js";
import { EXPORT_ROWS_MAX, Export, save } from "./csv.js";

/** `total` is the number of rows, null while unknown. */
export function useExport(filter: UsageFilter, total: number | null) {
  const running = useRef<Export | null>(null);
  const [count, setCount] = useState<number | null>(null);
  const [error, setError] = useState<CombinedError>();
  const run = async () => {
    running.current ??= new Export(filter);
    const current = running.current;
    setError(undefined);
    setCount(current.count);
    const end = await current.run(setCount);
    if (typeof end === "object") {
      setError(end);
      return;
    }
    if (end === "done") save(current.parts, `usage-${new Date().toISOString().slice(0, 10)}.csv`);
    if (running.current === current) running.current = null;
    setCount(null);
  };
  const cancel = () => {
    running.current?.cancel();
    running.current = null;
    setError(undefined);
    setCount(null);
  };
  // Leaving the page or changing the filters cancels the export.
  useEffect(() => cancel, [JSON.stringify(filter)]);
  const expected = total === null ? null : Math.min(total, EXPORT_ROWS_MAX);
  return {
    button: (
      <Button variant="default" onClick={run} disabled={count !== null || total === 0}>
        Download CSV
      </Button>
    ),
    progress: count !== null && (
      <div role="status">
        {!error && (
          <div className="card">
            <Group justify="space-between" gap="sm">
              <Text size="sm">
                {count.toLocaleString("en")} {expected === null ? "" : `of ${expected.toLocaleString("en")}`} rows
                {(total ?? 0) > EXPORT_ROWS_MAX ? " (newest first, limit of one file)" : ""}
              </Text>
              <Button size="compact-sm" variant="default" onClick={cancel}>
                Cancel download
              </Button>
            </Group>
            <Progress
              mt="xs"
              size="sm"
              value={expected ? (count / expected) * 100 : 100}
              animated={!expected}
              aria-label="Export progress"
            />
          </div>
        )}
        {error && (
          <Group align="flex-start" wrap="nowrap">
            <div style={{ flex: 1 }}>
              <Failure error={error} retry={run} />
            </div>
            <Button variant="default" onClick={cancel}>
              Cancel download
            </Button>
          </Group>
        )}
      </div>
    ),
  };
}
