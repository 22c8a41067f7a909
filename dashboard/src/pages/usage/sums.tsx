/** What is filtered, in sum and by hour or day. */
import { SimpleGrid, Skeleton } from "@mantine/core";
import { useMemo } from "react";
import type { UsageSumsQuery } from "../../client/generated/graphql.js";
import { formatPercent } from "../../ui/amounts.js";
import { Credits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { SumsChart } from "../../ui/sums-chart.js";
import { type Asked, timesOf } from "./filters.js";

type Me = NonNullable<UsageSumsQuery["me"]>;

export function Totals({ total }: { readonly total: NonNullable<Me["total"]>[number] | undefined }) {
  const times = total?.responseTimeMs;
  const number = (value: number | undefined) => (value ?? 0).toLocaleString("en");
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Requests" value={number(total?.requests)}>
        {total?.errorRate ? `${formatPercent(total.errorRate)} more failed, which cost nothing` : "each that was charged"}
      </Figure>
      <Figure label="Credits" value={<Credits value={total?.cost ?? "0"} />}>
        charged for them
      </Figure>
      <Figure label="Tokens" value={number((total?.inputTokens ?? 0) + (total?.outputTokens ?? 0))}>
        {number(total?.inputTokens)} in, {number(total?.outputTokens)} out
      </Figure>
      <Figure label="Time to answer" value={times ? `${number(times.p50)} ms` : "–"}>
        {times ? `half of them; 95 of 100 within ${number(times.p95)} ms` : "nothing was made"}
      </Figure>
    </SimpleGrid>
  );
}

const CHART_HEIGHT = 180;

export function Chart({
  groups,
  asked,
  now,
  onSelect,
}: {
  readonly groups: NonNullable<Me["groups"]>;
  readonly asked: Asked;
  readonly now: number;
  readonly onSelect: (from: string, to: string) => void;
}) {
  const times = useMemo(() => timesOf(asked, now), [asked, now]);
  return (
    <SumsChart
      title={times.isHourly ? "By hour and model" : "By day and model"}
      sums={groups}
      times={times}
      height={CHART_HEIGHT}
      onSelect={onSelect}
    />
  );
}

/** As large as what comes. */
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
