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
import { type Asked, FILTER_NAMES, isAskedFor, readFilters, timesOf } from "./filters.js";
import { listOf, type UsageList } from "./list.js";
import { Receipt } from "./receipt.js";
import { Chart, SumsSkeleton, Totals } from "./sums.js";
import { TableSkeleton, UsageTable } from "./table.js";

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id !== undefined) {
    prefetch(UsageReceiptDocument, { id });
    return;
  }
  const now = Date.now();
  const asked = readFilters(url.searchParams, now);
  listOf(asked.filter);
  prefetch(UsageSumsDocument, sumsOf(asked, now));
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Usage /> : <Receipt id={id} />;
}

function sumsOf(asked: Asked, now: number) {
  return { filter: asked.filter, groupBy: [timesOf(asked, now).isHourly ? ("HOUR" as const) : ("DAY" as const), "MODEL" as const] };
}

function Usage() {
  const [query, setQuery] = useSearchParams();
  const [now] = useState(Date.now);
  // The same address is the same question, whatever else stands in it.
  const address = FILTER_NAMES.map((name) => query.get(name) ?? "").join("\n");
  const asked = useMemo(() => readFilters(query, now), [address, now]);
  const keys = useKeys(asked, query.get("key"));
  const sums = useAnswer({ query: UsageSumsDocument, variables: useMemo(() => sumsOf(asked, now), [asked, now]) });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, sums.refetch, now);
  const total = sums.data?.me?.total?.[0];
  const { button, progress } = useExport(asked.filter, total?.requests ?? null);
  const chosen = query.get("key");
  const keyRestId = keys.find(({ value, restId }) => value === chosen || restId === chosen)?.restId ?? null;
  return (
    <Page title="Usage" description="Every request that was charged, the newest first." actions={button}>
      <FilterBar asked={asked} keys={keys} />
      {progress}
      <QueryView answer={sums} loading={<SumsSkeleton />}>
        {({ me }) => (
          <>
            <Totals total={me?.total?.[0]} />
            <Chart
              groups={me?.groups ?? []}
              asked={asked}
              now={now}
              onSelect={(from, to) => setQuery({ ...Object.fromEntries(query), from, to }, { preventScrollReset: true })}
            />
          </>
        )}
      </QueryView>
      <Requests
        asked={asked}
        keyRestId={keyRestId}
        total={total?.requests ?? null}
        onClear={address.trim() === "" ? null : () => setQuery({}, { preventScrollReset: true })}
      />
    </Page>
  );
}

function Requests({
  asked,
  keyRestId,
  total,
  onClear,
}: {
  readonly asked: Asked;
  readonly keyRestId: string | null;
  readonly total: number | null;
  readonly onClear: (() => void) | null;
}) {
  const list = useMemo(() => listOf(asked.filter), [asked]);
  useSyncExternalStore(list.subscribe, list.current);
  useLiveRows(list, asked, keyRestId);
  const isBack = useNavigationType() === "POP";
  // Whoever comes by a link begins at the top; whoever comes back, where they were.
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
          <UsageTable key={JSON.stringify(asked.filter)} list={list} total={total} />
        )
      ) : onClear ? (
        <Empty
          title="Nothing answers to these filters"
          action={
            <Button variant="default" onClick={onClear}>
              Clear the filters
            </Button>
          }
        >
          A longer time or fewer filters may find something.
        </Empty>
      ) : (
        <Empty title="No requests in the last 30 days">
          Whatever is made with your keys, or here in the playground, is shown here the moment it is charged.
        </Empty>
      )}
    </Card>
  );
}

/** What is charged while one looks comes in at the top, if no filter hides it. */
function useLiveRows(list: UsageList, asked: Asked, keyRestId: string | null): void {
  const { feed } = useLive();
  useEffect(() => {
    list.offer(feed.filter((record) => isAskedFor(record, asked, keyRestId)));
    // An empty list has nobody who reads in it.
    if (list.rows.length === 0) list.letIn();
  });
  useEffect(() => {
    void list.catchUp();
    return onReconnect(() => void list.catchUp());
  }, [list]);
}
