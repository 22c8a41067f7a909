/** What is filtered, in sum and by hour or day. */
import { SegmentedControl, SimpleGrid, Skeleton } from "@mantine/core";
import { Suspense, useMemo, useState } from "react";
import type { UsageSumsQuery } from "../../client/generated/graphql.js";
import { formatPercent } from "../../ui/amounts.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { later } from "../../ui/later.js";
import { Card } from "../../ui/page.js";
import { toStacks } from "../../ui/stacks.js";
import { type Asked, timesOf } from "./filters.js";

const StackedBars = later(() => import("../../ui/chart.js"));

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

const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat("en", {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
});

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
  const [shown, setShown] = useState<"cost" | "requests">("cost");
  const times = useMemo(() => timesOf(asked, now), [asked, now]);
  const { stacks, series } = useMemo(() => toStacks(groups, times, shown), [groups, times, shown]);
  const label = `${shown === "cost" ? "Credits" : "Requests"} ${times.isHourly ? "an hour" : "a day"} by model`;
  return (
    <Card
      title={times.isHourly ? "By hour and model" : "By day and model"}
      actions={
        <SegmentedControl
          size="xs"
          value={shown}
          onChange={(value) => setShown(value === "cost" ? "cost" : "requests")}
          data={[
            { value: "cost", label: "Credits" },
            { value: "requests", label: "Requests" },
          ]}
          aria-label="What is shown"
        />
      }
    >
      <Suspense fallback={<Skeleton height={CHART_HEIGHT + 26} />}>
        <StackedBars
          label={label}
          stacks={stacks}
          series={series}
          height={CHART_HEIGHT}
          format={(value) => (shown === "cost" ? formatCredits(value.toFixed(9), 2) : value.toLocaleString("en"))}
          formatTime={(from) => (times.isHourly ? HOUR : DAY).format(new Date(from))}
          onSelect={({ from }) => onSelect(from, new Date(Date.parse(from) + times.step).toISOString())}
        />
      </Suspense>
    </Card>
  );
}
const CHART_HEIGHT = 180;

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
