import type { CombinedError } from "urql";
import { type FeedRecordFragment, type UsageFilter, type UsageOrder, UsageRowsDocument } from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { Listeners } from "../../client/listeners.js";

export const PAGE = 100;
/** Live records that wait while the user has scrolled down. With more, the list reloads instead of showing them. */
const WAITING_MAX = 1_000;

export class UsageList {
  /** Grows in place, so that pages do not copy 100,000 rows. `version` changes with it. */
  readonly rows: FeedRecordFragment[] = [];
  hasMore = true;
  isLoading = false;
  error: CombinedError | undefined;
  version = 0;
  /** Scroll position at which the page was left. */
  offset = 0;
  private cursor: string | null = null;
  private generation = 0;
  /** The newest waiting records, WAITING_MAX at most. `waitingCount` counts all. */
  private waiting: FeedRecordFragment[] = [];
  waitingCount = 0;
  private readonly known = new Set<string>();
  private readonly listeners = new Listeners();

  constructor(
    private readonly filter: UsageFilter,
    private readonly order: UsageOrder,
  ) {}

  readonly subscribe = this.listeners.add;
  readonly current = (): number => this.version;

  /** Newest first. Only then do new charges belong at the top. */
  get isByTime(): boolean {
    return this.order.field === "TIMESTAMP" && this.order.direction === "DESC";
  }

  get isFirstLoading(): boolean {
    return this.rows.length === 0 && this.hasMore && !this.error;
  }

  async loadMore(): Promise<void> {
    if (this.isLoading || !this.hasMore) return;
    this.isLoading = true;
    this.error = undefined;
    const { generation } = this;
    const { data, error } = await this.fetchPage(this.cursor);
    if (generation !== this.generation) return;
    this.isLoading = false;
    this.error = error;
    if (data?.me?.usage) {
      const { nodes, pageInfo } = data.me.usage;
      this.append(nodes);
      this.hasMore = pageInfo.hasNextPage;
      this.cursor = pageInfo.endCursor;
    }
    this.changed();
  }

  /** Adds live records, newest first. Does nothing before the first page has loaded, because that page will have them. */
  addLive(records: readonly FeedRecordFragment[]): void {
    if (this.isFirstLoading) return;
    const fresh = records.filter(({ id }) => !this.known.has(id));
    if (fresh.length === 0) return;
    for (const { id } of fresh) this.known.add(id);
    // In another order the gateway decides where they belong: they are counted, and showing them reloads the list.
    if (this.isByTime) this.waiting = [...fresh, ...this.waiting].slice(0, WAITING_MAX);
    this.waitingCount += fresh.length;
    this.changed();
  }

  /** Fetches records that were missed without a connection. Reloads the list when they do not fit on one page. */
  async catchUp(): Promise<void> {
    if (this.isFirstLoading || !this.isByTime) return this.loadMore();
    const { data } = await this.fetchPage(null);
    const nodes = data?.me?.usage?.nodes;
    if (!nodes) return;
    if (nodes.length < PAGE || nodes.some(({ id }) => this.known.has(id))) this.addLive(nodes);
    else await this.reload();
  }

  private async reload(): Promise<void> {
    this.rows.length = 0;
    this.waiting = [];
    this.waitingCount = 0;
    this.known.clear();
    this.cursor = null;
    this.hasMore = true;
    // Discards the response of a page that is still loading.
    this.generation += 1;
    this.isLoading = false;
    await this.loadMore();
  }

  showWaiting(): void {
    if (this.waitingCount === 0) return;
    if (this.waitingCount > this.waiting.length) {
      void this.reload();
      return;
    }
    this.rows.unshift(...this.waiting);
    this.waiting = [];
    this.waitingCount = 0;
    this.changed();
  }

  private fetchPage(after: string | null) {
    return refetchQuery(UsageRowsDocument, { first: PAGE, after, filter: this.filter, orderBy: this.order });
  }

  private append(nodes: readonly FeedRecordFragment[]): void {
    for (const node of nodes) {
      if (this.known.has(node.id)) continue;
      this.known.add(node.id);
      this.rows.push(node);
    }
  }

  private changed(): void {
    this.version += 1;
    this.listeners.notify();
  }
}

let last: { readonly key: string; readonly list: UsageList } | null = null;

/** Returns the last list if its filter and order are the same, so that the user finds it as it was left. */
export function listFor({ filter, order }: { readonly filter: UsageFilter; readonly order: UsageOrder }): UsageList {
  const key = JSON.stringify([filter, order]);
  if (last?.key !== key) {
    last = { key, list: new UsageList(filter, order) };
    void last.list.loadMore();
  }
  return last.list;
}
