/** Card with a chart of usage by time and model or key, in credits or requests. The code of the chart loads after the page. */
import { Group, SegmentedControl, Skeleton, Stack } from "@mantine/core";
import { type ReactNode, Suspense, useMemo, useState } from "react";
import { formatCredits } from "./credits.js";
import { DAY_MS } from "./days.js";
import { lazyWithRetry } from "./lazy-with-retry.js";
import { Card } from "./page.js";
import { type TimeSum, type Times, toStacks } from "./stacks.js";

const StackedBars = lazyWithRetry(() => import("./chart.js"));

const DAY = { month: "short", day: "numeric", timeZone: "UTC" } as const;
const HOUR = { ...DAY, hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
/** Height of the legend below the bars. */
const CAPTION_HEIGHT = 26;

export interface SumsChartProps {
  readonly title: string;
  /** Null while they load. */
  readonly sums: readonly TimeSum[] | null;
  readonly times: Times;
  readonly height?: number;
  /** Noun for one series, "model" by default. */
  readonly noun?: "model" | "key";
  /** More controls in the heading. */
  readonly controls?: ReactNode;
  readonly children?: ReactNode;
  readonly empty?: ReactNode;
  readonly onSelect?: (from: string, to: string) => void;
}

export function SumsChart({ title, sums, times, height = 220, noun = "model", controls, children, empty, onSelect }: SumsChartProps) {
  const [shown, setShown] = useState<"cost" | "requests">("cost");
  const { stacks, series } = useMemo(() => toStacks(sums ?? [], times, shown, noun), [sums, times, shown, noun]);
  const isDaily = times.step >= DAY_MS;
  const formatTime = useMemo(() => timeFormatter(isDaily), [isDaily]);
  return (
    <Card
      title={title}
      actions={
        <Group gap="xs">
          {controls}
          <SegmentedControl
            size="xs"
            value={shown}
            onChange={(value) => setShown(value === "cost" ? "cost" : "requests")}
            data={[
              { value: "cost", label: "Credits" },
              { value: "requests", label: "Requests" },
            ]}
            aria-label="Unit of the chart"
          />
        </Group>
      }
    >
      {sums === null ? (
        <Skeleton height={height + CAPTION_HEIGHT} role="status" aria-label="Loading" />
      ) : series.length === 0 && empty !== undefined ? (
        empty
      ) : (
        <Stack gap="sm">
          {children}
          <Suspense fallback={<Skeleton height={height + CAPTION_HEIGHT} />}>
            <StackedBars
              label={`${shown === "cost" ? "Credits" : "Requests"} ${isDaily ? "per day" : "per hour"} by ${noun}`}
              stacks={stacks}
              series={series}
              height={height}
              format={(value) => (shown === "cost" ? formatCredits(value.toFixed(9), 2) : value.toLocaleString("en"))}
              formatTime={formatTime}
              {...(onSelect && {
                onSelect: ({ from }) => onSelect(from, new Date(Date.parse(from) + times.step).toISOString()),
              })}
            />
          </Suspense>
        </Stack>
      )}
    </Card>
  );
}

/** Makes its format on first use: a slow processor takes some 20 ms for it. */
function timeFormatter(isDaily: boolean): (from: string) => string {
  let format: Intl.DateTimeFormat | undefined;
  return (from) => {
    format ??= new Intl.DateTimeFormat("en", isDaily ? DAY : HOUR);
    return format.format(new Date(from));
  };
}
