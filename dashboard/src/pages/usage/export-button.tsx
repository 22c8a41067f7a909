/** The button that makes a file of what is filtered, how far it is, and how it is stopped. */
import { Button, Group, Progress, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import type { UsageFilter } from "../../client/generated/graphql.js";
import { Failure } from "../../ui/states.js";
import { EXPORT_ROWS_MAX, Export, save } from "./csv.js";

/** `total`: how many rows there are, null while it is not known. */
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
  // Who leaves, or asks for something else, wants no file of it.
  useEffect(() => cancel, [JSON.stringify(filter)]);
  const wanted = total === null ? null : Math.min(total, EXPORT_ROWS_MAX);
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
                {count.toLocaleString("en")} {wanted === null ? "" : `of ${wanted.toLocaleString("en")}`} rows
                {(total ?? 0) > EXPORT_ROWS_MAX ? ": the newest, as many as one file may have" : ""}
              </Text>
              <Button size="compact-sm" variant="default" onClick={cancel}>
                Cancel the download
              </Button>
            </Group>
            <Progress
              mt="xs"
              size="sm"
              value={wanted ? (count / wanted) * 100 : 100}
              animated={!wanted}
              aria-label="How much has been read"
            />
          </div>
        )}
        {error && (
          <Group align="flex-start" wrap="nowrap">
            <div style={{ flex: 1 }}>
              <Failure error={error} retry={run} />
            </div>
            <Button variant="default" onClick={cancel}>
              Cancel the download
            </Button>
          </Group>
        )}
      </div>
    ),
  };
}
