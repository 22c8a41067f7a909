/** Totals and chart of the filtered usage. */
import { SegmentedControl, SimpleGrid, Skeleton } from "@mantine/core";
import { useMemo } from "react";
import type { UsageSumsQuery } from "../../client/generated/graphql.js";
import { formatPercent } from "../../ui/amounts.js";
import { Credits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { SumsChart } from "../../ui/sums-chart.js";
import { type AppliedFilters, timesOf } from "./filters.js";

type Me = NonNullable<UsageSumsQuery["me"]>;

export function Totals({ total }: { readonly total: NonNullable<Me["total"]>[number] | undefined }) {
  const times = total?.responseTimeMs;
  const number = (value: number | undefined) => (value ?? 0).toLocaleString("en");
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Requests" value={number(total?.requests)}>
        {total?.errorRate ? `charged; error rate ${formatPercent(total.errorRate)}, not charged` : "charged"}
      </Figure>
      <Figure label="Credits" value={<Credits value={total?.cost ?? "0"} />}>
        charged in total
      </Figure>
      <Figure label="Tokens" value={number((total?.inputTokens ?? 0) + (total?.outputTokens ?? 0))}>
        {number(total?.inputTokens)} input, {number(total?.outputTokens)} output
      </Figure>
      <Figure label="Latency (p50)" value={times ? `${number(times.p50)} ms` : "–"}>
        {times ? `p95 ${number(times.p95)} ms` : "no requests"}
      </Figure>
    </SimpleGrid>
  );
}

const CHART_HEIGHT = 180;

export function Chart({
  groups,
  filters,
  now,
  series,
  keyNames,
  onSeries,
  onSelect,
}: {
  readonly groups: NonNullable<Me["groups"]>;
  readonly filters: AppliedFilters;
  readonly now: number;
  readonly series: "MODEL" | "KEY";
  /** By REST ID. */
  readonly keyNames: ReadonlyMap<string, string>;
  readonly onSeries: (series: "MODEL" | "KEY") => void;
  readonly onSelect: (from: string, to: string) => void;
}) {
  const times = useMemo(() => timesOf(filters, now), [filters, now]);
  const nameOf = (apiKeyId: string | null) => (apiKeyId === null ? "Signed-in session" : (keyNames.get(apiKeyId) ?? apiKeyId));
  const noun = series === "KEY" ? "key" : "model";
  const sums = useMemo(
    () => (series === "KEY" ? groups.map((group) => ({ ...group, name: nameOf(group.apiKeyId) })) : groups),
    [groups, series, keyNames],
  );
  return (
    <SumsChart
      title={times.isHourly ? `Usage by hour and ${noun}` : `Usage by day and ${noun}`}
      noun={noun}
      controls={
        <SegmentedControl
          size="xs"
          value={series}
          onChange={(value) => onSeries(value === "KEY" ? "KEY" : "MODEL")}
          data={[
            { value: "MODEL", label: "By model" },
            { value: "KEY", label: "By key" },
          ]}
          aria-label="Groups of the chart"
        />
      }
      sums={sums}
      times={times}
      height={CHART_HEIGHT}
      onSelect={onSelect}
    />
  );
}

/** Has the size of the loaded content. */
export function SumsSkeleton() {
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md" role="status" aria-label="Loading">
        {Array.from({ length: 4 }, (_, index) => (
          <Skeleton key={index} height={104} radius="md" />
        ))}
      </SimpleGrid>
      <Skeleton height={CHART_HEIGHT + 96} radius="md" />
    </>
  );
}
