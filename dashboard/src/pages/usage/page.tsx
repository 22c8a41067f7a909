import { Button } from "@mantine/core";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useNavigationType, useParams, useSearchParams } from "react-router";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { onReconnect } from "../../client/connection.js";
import { UsageReceiptDocument, UsageSumsDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { useLive } from "../../shell/live.js";
import { Card, Page } from "../../ui/page.js";
import { Empty, Failure, QueryView } from "../../ui/states.js";
import { useExport } from "./export-button.js";
import { FilterBar, useKeys } from "./filter-bar.js";
import { type AppliedFilters, FILTER_NAMES, matchesFilters, readFilters, timesOf } from "./filters.js";
import { listFor, type UsageList } from "./list.js";
import { Receipt } from "./receipt.js";
import { Chart, SumsSkeleton, Totals } from "./sums.js";
import { TableSkeleton, UsageTable } from "./table.js";

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id !== undefined) {
    prefetch(UsageReceiptDocument, { id });
    return;
  }
  const now = Date.now();
  const filters = readFilters(url.searchParams, now);
  listFor(filters);
  prefetch(UsageSumsDocument, sumsOf(filters, now, seriesOf(url.searchParams)));
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Usage /> : <Receipt id={id} />;
}

type Series = "MODEL" | "KEY";

const seriesOf = (query: URLSearchParams): Series => (query.get("group") === "key" ? "KEY" : "MODEL");

function sumsOf(filters: AppliedFilters, now: number, series: Series) {
  return { filter: filters.filter, groupBy: [timesOf(filters, now).isHourly ? ("HOUR" as const) : ("DAY" as const), series] };
}

function Usage() {
  const [query, setQuery] = useSearchParams();
  const [now] = useState(Date.now);
  // Other parameters of the address do not change the query.
  const address = FILTER_NAMES.map((name) => query.get(name) ?? "").join("\n");
  const sort = query.get("sort") ?? "";
  const filters = useMemo(() => readFilters(query, now), [address, sort, now]);
  const series = seriesOf(query);
  const keys = useKeys(filters, query.get("key"));
  const keyNames = useMemo(() => new Map(keys.map(({ restId, label }) => [restId, label])), [keys]);
  const sums = useAnswer({ query: UsageSumsDocument, variables: useMemo(() => sumsOf(filters, now, series), [address, now, series]) });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, sums.refetch, now);
  const total = sums.data?.me?.total?.[0];
  const { button, progress } = useExport(filters.filter, total?.requests ?? null);
  const chosen = query.get("key");
  const keyRestId = keys.find(({ value, restId }) => value === chosen || restId === chosen)?.restId ?? null;
  return (
    <Page title="Usage" description="All charged requests." actions={button}>
      <FilterBar filters={filters} keys={keys} />
      {progress}
      <Requests
        filters={filters}
        keyRestId={keyRestId}
        total={total?.requests ?? null}
        onClear={address.trim() === "" ? null : () => setQuery({}, { preventScrollReset: true })}
      />
      <QueryView answer={sums} loading={<SumsSkeleton />}>
        {({ me }) => (
          <>
            <Totals total={me?.total?.[0]} />
            <Chart
              groups={me?.groups ?? []}
              filters={filters}
              now={now}
              series={series}
              keyNames={keyNames}
              onSeries={(next) => {
                const { group: _, ...rest } = Object.fromEntries(query);
                setQuery({ ...rest, ...(next === "KEY" && { group: "key" }) }, { replace: true, preventScrollReset: true });
              }}
              onSelect={(from, to) => setQuery({ ...Object.fromEntries(query), from, to }, { preventScrollReset: true })}
            />
          </>
        )}
      </QueryView>
    </Page>
  );
}

function Requests({
  filters,
  keyRestId,
  total,
  onClear,
}: {
  readonly filters: AppliedFilters;
  readonly keyRestId: string | null;
  readonly total: number | null;
  readonly onClear: (() => void) | null;
}) {
  const list = useMemo(() => listFor(filters), [filters]);
  useSyncExternalStore(list.subscribe, list.current);
  useLiveRows(list, filters, keyRestId);
  const isBack = useNavigationType() === "POP";
  // Links open the list at the top. The back button restores the scroll position.
  useMemo(() => {
    if (!isBack) list.offset = 0;
  }, [list, isBack]);
  return (
    <Card title="Requests">
      {list.isFirstLoading ? (
        <TableSkeleton />
      ) : list.rows.length > 0 || list.hasMore ? (
        list.rows.length === 0 && list.error ? (
          <Failure error={list.error} retry={() => void list.loadMore()} />
        ) : (
          <UsageTable key={JSON.stringify([filters.filter, filters.order])} list={list} total={total} order={filters.order} />
        )
      ) : onClear ? (
        <Empty
          title="No requests match your filters"
          action={
            <Button variant="default" onClick={onClear}>
              Clear filters
            </Button>
          }
        >
          Try a longer time range or fewer filters.
        </Empty>
      ) : (
        <Empty title="No requests in the last 30 days">
          Requests made with your keys or in the playground appear here as soon as they are charged.
        </Empty>
      )}
    </Card>
  );
}

/** Adds new charges that match the filters at the top of the list. */
function useLiveRows(list: UsageList, filters: AppliedFilters, keyRestId: string | null): void {
  const { feed } = useLive();
  useEffect(() => {
    list.addLive(feed.filter((record) => matchesFilters(record, filters, keyRestId)));
    // In an empty list there is no scroll position to preserve.
    if (list.rows.length === 0) list.showWaiting();
  });
  useEffect(() => {
    void list.catchUp();
    return onReconnect(() => void list.catchUp());
  }, [list]);
}
