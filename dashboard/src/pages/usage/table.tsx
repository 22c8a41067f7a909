/** Virtual table: renders the visible rows only. Arrows, Page Up, Page Down, Home and End move through the rows. */
import { Button, Group, Skeleton, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, type KeyboardEvent, memo, useCallback, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";
import { Link, useSearchParams } from "react-router";
import type { FeedRecordFragment, UsageOrder } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Credits } from "../../ui/credits.js";
import { MODALITIES } from "../../ui/modalities.js";
import { Failure } from "../../ui/states.js";
import { SORTS } from "./filters.js";
import type { UsageList } from "./list.js";
import "./usage.css";

const ROW_HEIGHT = 44;
const HEAD_HEIGHT = 36;
/** Rows rendered beyond the visible ones. */
const OVERSCAN = 10;
/** Rows before the end at which the next page is fetched. */
const AHEAD = 40;
/** Lists up to this length do not scroll in a box of their own. */
const SHORT = 8;

interface Column {
  readonly title: string;
  readonly width: string;
  readonly isNumber?: true;
  /** Its name in the address, for a column that sorts. */
  readonly sort?: string;
}

const COLUMNS: readonly Column[] = [
  { title: "Time", width: "16%", sort: "time" },
  { title: "Model", width: "26%" },
  { title: "Key", width: "15%" },
  { title: "Type", width: "11%" },
  { title: "Tokens", width: "12%", isNumber: true, sort: "tokens" },
  { title: "Duration", width: "10%", isNumber: true, sort: "duration" },
  { title: "Credits", width: "10%", isNumber: true, sort: "credits" },
];
const PHONE_COLUMNS: readonly Column[] = [
  { title: "Time", width: "28%", sort: "time" },
  { title: "Model", width: "42%" },
  { title: "Credits", width: "30%", isNumber: true, sort: "credits" },
];
const PHONE = "(max-width: 48em)";

export function UsageTable({
  list,
  total,
  order,
}: {
  readonly list: UsageList;
  readonly total: number | null;
  readonly order: UsageOrder;
}) {
  const isPhone = useMediaQuery(PHONE, undefined, { getInitialValueInEffect: false }) ?? false;
  const columns = isPhone ? PHONE_COLUMNS : COLUMNS;
  useSyncExternalStore(list.subscribe, list.current);
  const region = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const { rows } = list;
  const rangeExtractor = useCallback(
    // The active row stays rendered while scrolling, or the focus would be lost.
    (range: Range) => [...new Set([...defaultRangeExtractor(range), ...(active < range.count ? [active] : [])])].sort((a, b) => a - b),
    [active],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => region.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    scrollMargin: HEAD_HEIGHT,
    scrollPaddingStart: HEAD_HEIGHT,
    initialOffset: list.offset,
    getItemKey: (index) => rows[index]?.id ?? index,
    rangeExtractor,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;

  useEffect(() => {
    if (last >= rows.length - AHEAD && !list.error) void list.loadMore();
  }, [last, rows.length, list]);

  // New rows appear automatically at the top, unless the pointer or the focus is on the table.
  const isAtTop = (virtual.scrollOffset ?? 0) <= 1;
  useLayoutEffect(() => {
    if (list.waitingCount > 0 && list.isByTime && isAtTop && !region.current?.matches(":hover, :focus-within")) list.showWaiting();
  });
  // Layout effects clean up before the element is removed and loses its scroll position.
  useLayoutEffect(() => {
    const element = region.current;
    return () => {
      list.offset = element?.scrollTop ?? 0;
    };
  }, [list]);

  const goTo = (index: number) => {
    const to = Math.max(0, Math.min(index, rows.length - 1));
    setActive(to);
    virtual.scrollToIndex(to);
    // The row may be rendered only some frames after the scrolling.
    const focus = (framesLeft: number) => {
      const link = region.current?.querySelector<HTMLElement>(`[data-index="${to}"] a`);
      if (link) link.focus({ preventScroll: true });
      else if (framesLeft > 0) requestAnimationFrame(() => focus(framesLeft - 1));
    };
    requestAnimationFrame(() => focus(20));
  };
  const keyPressed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((region.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
    const to = KEYS.get(event.key)?.(active, page, rows.length);
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    goTo(to);
  };
  // A stable handler, so that memoized rows do not render again while scrolling.
  const latest = useRef(keyPressed);
  useLayoutEffect(() => {
    latest.current = keyPressed;
  });
  const onKeyDown = useCallback((event: KeyboardEvent) => latest.current(event), []);
  const showNew = () => {
    list.showWaiting();
    virtual.scrollToOffset(0);
    setActive(0);
  };

  return (
    <>
      <div role="status">
        {list.waitingCount > 0 && (
          <Group justify="center" mb="xs">
            <Button size="compact-sm" variant="light" onClick={showNew}>
              {list.waitingCount === 1 ? "Show 1 new request" : `Show ${list.waitingCount.toLocaleString("en")} new requests`}
            </Button>
          </Group>
        )}
      </div>
      <section
        ref={region}
        className={rows.length <= SHORT && !list.hasMore ? "usage-region short" : "usage-region"}
        aria-label="Requests"
        aria-busy={list.isLoading}
      >
        <table className="usage-table" aria-rowcount={total === null ? -1 : Math.max(total, rows.length) + 1}>
          <colgroup>
            {columns.map(({ title, width }) => (
              <col key={title} style={{ width }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <Heading key={column.title} column={column} order={order} />
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map(({ key, index, start }, place) => {
              const row = rows[index];
              const above = place === 0 ? HEAD_HEIGHT : (items[place - 1]?.end ?? HEAD_HEIGHT);
              return row ? (
                <Fragment key={key}>
                  <Space height={start - above} columns={columns.length} />
                  <Row row={row} isPhone={isPhone} index={index} isActive={index === active} onFocus={setActive} onKeyDown={onKeyDown} />
                </Fragment>
              ) : null;
            })}
            <Space height={HEAD_HEIGHT + virtual.getTotalSize() - (items.at(-1)?.end ?? HEAD_HEIGHT)} columns={columns.length} />
          </tbody>
        </table>
      </section>
      <Foot list={list} />
    </>
  );
}

/** Heading of a column. A click sorts by it, the largest or newest first; another click turns the order around. */
function Heading({ column: { title, isNumber, sort }, order }: { readonly column: Column; readonly order: UsageOrder }) {
  const [, setQuery] = useSearchParams();
  const className = isNumber && "number";
  if (sort === undefined)
    return (
      <th scope="col" className={className}>
        {title}
      </th>
    );
  const isSorted = SORTS.get(sort) === order.field;
  const next = isSorted && order.direction === "DESC" ? sort : `-${sort}`;
  const onClick = () =>
    setQuery(
      (before) => {
        const after = new URLSearchParams(before);
        if (next === "-time") after.delete("sort");
        else after.set("sort", next);
        return after;
      },
      { preventScrollReset: true },
    );
  return (
    <th scope="col" className={className} aria-sort={isSorted ? (order.direction === "DESC" ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={onClick}>
        {title}
        <span aria-hidden>{isSorted ? (order.direction === "DESC" ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** Placeholder for rows that are not rendered. */
function Space({ height, columns }: { readonly height: number; readonly columns: number }) {
  return height > 0 ? (
    <tr className="space">
      <td colSpan={columns} style={{ height }} />
    </tr>
  ) : null;
}

type Go = (active: number, page: number, count: number) => number;
const KEYS: ReadonlyMap<string, Go> = new Map<string, Go>([
  ["ArrowDown", (active) => active + 1],
  ["ArrowUp", (active) => active - 1],
  ["PageDown", (active, page) => active + page],
  ["PageUp", (active, page) => active - page],
  ["Home", () => 0],
  ["End", (_active, _page, count) => count - 1],
]);

const MOMENT = new Intl.DateTimeFormat("en", {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

const PHONE_DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const PHONE_TIME = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

const Row = memo(function Row({
  row,
  isPhone,
  index,
  isActive,
  onFocus,
  onKeyDown,
}: {
  readonly row: FeedRecordFragment;
  readonly isPhone: boolean;
  readonly index: number;
  readonly isActive: boolean;
  readonly onFocus: (index: number) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}) {
  const { id, timestamp, modality, modelId, modelUsedId, apiKeyId, apiKeyName, cost, status, responseTimeMs, usage } = row;
  const moment = new Date(timestamp);
  const remarks = [...(modelUsedId === modelId ? [] : [`fallback for ${modelId}`]), ...(status === "OK" ? [] : ["cancelled"])];
  return (
    <tr aria-rowindex={index + 2} data-index={index}>
      <td>
        <Link
          to={`${addressOf("usage")}/${encodeURIComponent(id)}`}
          tabIndex={isActive ? 0 : -1}
          onFocus={() => onFocus(index)}
          onKeyDown={onKeyDown}
        >
          <time dateTime={timestamp} title={timestamp}>
            {isPhone ? PHONE_TIME.format(moment) : MOMENT.format(moment)}
            {isPhone && <span className="under">{PHONE_DAY.format(moment)}</span>}
          </time>
        </Link>
      </td>
      <td title={modelUsedId}>
        {modelUsedId}
        {remarks.length > 0 && <span className="under">{remarks.join(", ")}</span>}
        {isPhone && remarks.length === 0 && <span className="under">{apiKeyId === null ? "Session" : (apiKeyName ?? "Unknown key")}</span>}
      </td>
      {!isPhone && (
        <>
          <td title={apiKeyName ?? undefined}>
            {apiKeyId === null ? <span className="soft">Session</span> : <bdi>{apiKeyName ?? "Unknown key"}</bdi>}
          </td>
          <td>{MODALITIES.get(modality)}</td>
          <td className="number">
            <Tokens input={tokensOf(INPUT, usage)} output={tokensOf(OUTPUT, usage)} />
          </td>
          <td className="number" title={`${responseTimeMs.toLocaleString("en")} ms`}>
            {formatDuration(responseTimeMs)}
          </td>
        </>
      )}
      <td className="number">
        <Credits value={cost} />
      </td>
    </tr>
  );
});

/** Milliseconds up to four digits, then seconds and minutes. */
function formatDuration(milliseconds: number): string {
  if (milliseconds < 10_000) return `${milliseconds.toLocaleString("en")} ms`;
  const seconds = milliseconds / 1_000;
  return seconds < 600 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60).toLocaleString("en")} min`;
}

type Quantities = FeedRecordFragment["usage"];
const INPUT = ["inputTextTokens", "inputCachedTokens", "inputCacheWriteTokens", "inputAudioTokens", "inputImageTokens"] as const;
const OUTPUT = ["outputTextTokens", "outputReasoningTokens", "outputAudioTokens", "outputImageTokens"] as const;

/** Tokens of all kinds. */
function tokensOf(kinds: readonly (keyof Quantities)[], usage: Quantities): number {
  return kinds.reduce((tokens, kind) => tokens + Number(usage[kind]), 0);
}

function Tokens({ input, output }: { readonly input: number; readonly output: number }) {
  if (input + output === 0) return <>–</>;
  return (
    <>
      {(input + output).toLocaleString("en")}
      <span className="under">
        {input.toLocaleString("en")} in, {output.toLocaleString("en")} out
      </span>
    </>
  );
}

/** Has a constant height, so that changes of its text move nothing. */
function Foot({ list }: { readonly list: UsageList }) {
  if (list.error) return <Failure error={list.error} retry={() => void list.loadMore()} />;
  return (
    <Text size="sm" c="dimmed" mt="xs" role="status">
      {list.hasMore
        ? `${list.rows.length.toLocaleString("en")} requests loaded. Scroll to load more.`
        : `${list.rows.length.toLocaleString("en")} ${list.rows.length === 1 ? "request" : "requests"}`}
    </Text>
  );
}

export function TableSkeleton() {
  return (
    <div className="usage-region" role="status" aria-label="Loading">
      {Array.from({ length: 14 }, (_, row) => (
        <Skeleton key={row} height={28} my={8} />
      ))}
    </div>
  );
}
