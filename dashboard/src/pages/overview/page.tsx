import { Anchor, SegmentedControl, SimpleGrid, Skeleton, Stack, Table, Text } from "@mantine/core";
import { memo, Suspense, useCallback, useMemo, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { type Answer, useAnswer, useRefetchOnChange } from "../../client/answer.js";
import {
  type FeedRecordFragment,
  OverviewFeedDocument,
  type OverviewFeedQuery,
  OverviewUsageDocument,
  type OverviewUsageQuery,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { BalanceNotice, Balances } from "../../shell/balances.js";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { formatPercent } from "../../ui/amounts.js";
import { Credits, fromNanocredits, toNanocredits } from "../../ui/credits.js";
import { DAY_MS } from "../../ui/days.js";
import { Figure } from "../../ui/figure.js";
import { lazyWithRetry } from "../../ui/lazy-with-retry.js";
import { Card, Page } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { SumsChart } from "../../ui/sums-chart.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";
import { HOUR_MS, RANGE_DEFAULT, RANGES, readRange, startOf, variablesOf } from "./range.js";

const FirstRun = lazyWithRetry(() => import("./first-run.js"));

export function start({ url }: { readonly url: URL }): void {
  prefetch(OverviewUsageDocument, variablesOf(readRange(url.searchParams)));
  prefetch(OverviewFeedDocument, {});
}

export function Component() {
  const { chargedAt } = useLive();
  const [query, setQuery] = useSearchParams();
  const range = readRange(query);
  const usage = useAnswer({ query: OverviewUsageDocument, variables: useMemo(() => variablesOf(range), [range]) });
  useRefetchOnChange(chargedAt, usage.refetch);
  const setRange = useCallback(
    (next: string) => setQuery(next === RANGE_DEFAULT ? {} : { range: next }, { replace: true, preventScrollReset: true }),
    [setQuery],
  );
  const recent = useAnswer({ query: OverviewFeedDocument });
  const { isNew, dismiss } = useFirstRun(recent.data);
  return (
    <Page title="Overview">
      <BalanceNotice />
      <Balances />
      {isNew && (
        <Suspense fallback={<Skeleton height={320} radius="md" />}>
          <FirstRun onDismiss={dismiss} />
        </Suspense>
      )}
      {!isNew && (
        <QueryView answer={usage} loading={<Placeholder range={range} onRange={setRange} />}>
          {({ me }) =>
            me && (
              <>
                <Spend days={me.days ?? NONE} today={me.today?.[0] ?? null} />
                <Daily sums={me.models ?? NONE} range={range} onRange={setRange} />
              </>
            )
          }
        </QueryView>
      )}
      <Feed recent={recent} />
    </Page>
  );
}

/** Of the same height as the figures and the chart, so that nothing moves when they arrive. */
function Placeholder(props: Omit<DailyProps, "sums">) {
  return (
    <>
      <Skeleton visible aria-hidden>
        <Spend days={NONE} today={TYPICAL} />
      </Skeleton>
      <Daily sums={null} {...props} />
    </>
  );
}

/** An account is new until its first charge. Its checklist stays for this visit, so that its last step can be seen. */
function useFirstRun(recent: OverviewFeedQuery | undefined): { readonly isNew: boolean; readonly dismiss: () => void } {
  const { feed } = useLive();
  const [state, setState] = useState<"unknown" | "new" | "known">("unknown");
  const nodes = recent?.me?.usage?.nodes;
  if (state === "unknown" && nodes) setState(nodes.length === 0 && feed.length === 0 ? "new" : "known");
  return { isNew: state === "new", dismiss: useCallback(() => setState("known"), []) };
}

const NONE: readonly never[] = [];

type Me = NonNullable<OverviewUsageQuery["me"]>;
type DaySum = NonNullable<Me["days"]>[number];
type Day = NonNullable<Me["models"]>[number];
type Today = NonNullable<Me["today"]>[number];

type TodayShown = Pick<Today, "requests" | "cost" | "errorRate"> & {
  readonly responseTimeMs: Omit<NonNullable<Today["responseTimeMs"]>, "__typename"> | null;
  readonly timeToFirstTokenMs: Omit<NonNullable<Today["timeToFirstTokenMs"]>, "__typename"> | null;
};
/** For texts of the usual length. */
const TYPICAL: TodayShown = {
  requests: 100,
  cost: "0",
  errorRate: 0,
  responseTimeMs: { p50: 100, p95: 1_000, p99: 1_000 },
  timeToFirstTokenMs: null,
};

function SpendView({ days, today }: { readonly days: readonly DaySum[]; readonly today: TodayShown | null }) {
  const now = new Date();
  const month = now.toISOString().slice(0, 7);
  const lastMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)).toISOString().slice(0, 7);
  const errorRate = today?.errorRate;
  const times = today?.responseTimeMs;
  const first = today?.timeToFirstTokenMs;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Spent today" value={<Credits value={today?.cost ?? "0"} />}>
        {number(today?.requests ?? 0)} {today?.requests === 1 ? "request" : "requests"}
      </Figure>
      <Figure label="This month" value={<Credits value={costOf(days, month)} />}>
        Last month: <Credits value={costOf(days, lastMonth, now.getUTCDate())} /> to this day, <Credits value={costOf(days, lastMonth)} />{" "}
        in total
      </Figure>
      <Figure label="Latency today (p50)" value={times ? `${number(times.p50)} ms` : "–"}>
        {times ? `p95 ${number(times.p95)} ms, p99 ${number(times.p99)} ms` : "No requests yet"}
        {first && `. First token: p50 ${number(first.p50)} ms, p95 ${number(first.p95)} ms`}
      </Figure>
      <Figure label="Error rate today" value={errorRate === null || errorRate === undefined ? "–" : formatPercent(errorRate)}>
        Failures of the gateway or its upstreams, not charged
      </Figure>
    </SimpleGrid>
  );
}
// The live feed renders the page up to four times a second; memo spares this part.
const Spend = memo(SpendView);

const number = (value: number) => value.toLocaleString("en");

/** Cost of a month up to and including a day. */
function costOf(days: readonly DaySum[], month: string, lastDay = 31): string {
  const isWithin = (from: string | null) => from?.startsWith(month) && Number(from.slice(8, 10)) <= lastDay;
  return fromNanocredits(days.reduce((sum, { from, cost }) => (isWithin(from) ? sum + toNanocredits(cost) : sum), 0n));
}

interface DailyProps {
  readonly sums: readonly Day[] | null;
  readonly range: string;
  readonly onRange: (range: string) => void;
}

function DailyView({ sums, range, onRange }: DailyProps) {
  const navigate = useNavigate();
  const shown = RANGES.get(range) ?? { label: "30 days", step: DAY_MS, count: 30 };
  return (
    <SumsChart
      title={shown.step === HOUR_MS ? "Usage by hour and model" : "Usage by day and model"}
      controls={
        <SegmentedControl
          size="xs"
          value={range}
          onChange={onRange}
          data={[...RANGES].map(([value, { label }]) => ({ value, label }))}
          aria-label="Time range"
        />
      }
      sums={sums}
      times={useMemo(() => ({ first: startOf(shown), step: shown.step, count: shown.count }), [shown])}
      empty={
        <Empty
          title={`No usage in the last ${shown.label}`}
          action={
            <Anchor component={Link} to={addressOf("playground")}>
              Try a model in the playground
            </Anchor>
          }
        />
      }
      onSelect={(from, to) => void navigate(`${addressOf("usage")}?${new URLSearchParams({ from, to })}`)}
    />
  );
}
const Daily = memo(DailyView);

/** Recent requests, with new charges on top. */
function Feed({ recent }: { readonly recent: Answer<OverviewFeedQuery> }) {
  const { feed } = useLive();
  return (
    <Card
      title="Recent requests"
      actions={
        <Anchor component={Link} to={addressOf("usage")} size="sm">
          All requests
        </Anchor>
      }
    >
      <QueryView answer={recent} loading={<Loading rows={6} height={28} />}>
        {({ me }) => {
          const known = new Set(feed.map(({ id }) => id));
          const rows = [...feed, ...(me?.usage?.nodes ?? []).filter(({ id }) => !known.has(id))].slice(0, FEED_SHOWN);
          return rows.length === 0 ? (
            <Empty title="No requests yet">
              Requests made with your keys or in the playground appear here as soon as they are charged.
            </Empty>
          ) : (
            <Wide label="Requests">
              <Table highlightOnHover className="slim">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Time</Table.Th>
                    <Table.Th>Model</Table.Th>
                    <Table.Th visibleFrom="sm">Key</Table.Th>
                    <Table.Th ta="right" visibleFrom="sm">
                      Duration
                    </Table.Th>
                    <Table.Th ta="right">Credits</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rows.map((row) => (
                    <FeedRow key={row.id} row={row} />
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          );
        }}
      </QueryView>
    </Card>
  );
}
const FEED_SHOWN = 20;

const FeedRow = memo(function FeedRow({ row }: { readonly row: FeedRecordFragment }) {
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        <Anchor component={Link} to={`${addressOf("usage")}/${encodeURIComponent(row.id)}`} size="sm">
          <When value={row.timestamp} />
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Stack gap={0}>
          <span className="any-wrap">{row.modelUsedId}</span>
          {row.modelUsedId !== row.modelId && (
            <Text size="xs" c="dimmed">
              fallback for {row.modelId}
            </Text>
          )}
          {row.status === "CANCELLED" && (
            <Text size="xs" c="dimmed">
              cancelled
            </Text>
          )}
        </Stack>
      </Table.Td>
      <Table.Td className="any-wrap" visibleFrom="sm">
        <bdi>{row.apiKeyName ?? "Signed-in session"}</bdi>
      </Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: "nowrap" }} visibleFrom="sm">
        {number(row.responseTimeMs)} ms
      </Table.Td>
      <Table.Td ta="right">
        <Credits value={row.cost} />
      </Table.Td>
    </Table.Tr>
  );
});
