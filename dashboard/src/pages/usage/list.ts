import type { CombinedError } from "urql";
import { type FeedRecordFragment, type UsageFilter, UsageRowsDocument } from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { Listeners } from "../../client/listeners.js";

export const PAGE = 100;
/** Of more that were told while one read below, the list begins anew instead. */
const WAITING_MAX = 1_000;

export class UsageList {
  /** Grows in place: a hundred thousand rows are not copied for each page. `version` says that it has. */
  readonly rows: FeedRecordFragment[] = [];
  hasMore = true;
  isLoading = false;
  error: CombinedError | undefined;
  version = 0;
  /** Where it was scrolled to when it was left. */
  offset = 0;
  private cursor: string | null = null;
  private turn = 0;
  /** The newest of those that wait; `waitingCount` has them all. */
  private waiting: FeedRecordFragment[] = [];
  waitingCount = 0;
  private readonly known = new Set<string>();
  private readonly listeners = new Listeners();

  constructor(private readonly filter: UsageFilter) {}

  readonly subscribe = this.listeners.add;
  readonly current = (): number => this.version;

  get isFirstLoading(): boolean {
    return this.rows.length === 0 && this.hasMore && !this.error;
  }

  async loadMore(): Promise<void> {
    if (this.isLoading || !this.hasMore) return;
    this.isLoading = true;
    this.error = undefined;
    const { turn } = this;
    const { data, error } = await this.ask(this.cursor);
    if (turn !== this.turn) return;
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

  /** Newest first. Before the first page has come there is nothing that they could be above of: it has them. */
  offer(records: readonly FeedRecordFragment[]): void {
    if (this.isFirstLoading) return;
    const fresh = records.filter(({ id }) => !this.known.has(id));
    if (fresh.length === 0) return;
    for (const { id } of fresh) this.known.add(id);
    this.waiting = [...fresh, ...this.waiting].slice(0, WAITING_MAX);
    this.waitingCount += fresh.length;
    this.changed();
  }

  /** What the gateway could not tell of while it was away. Too much for one page: the list begins anew. */
  async catchUp(): Promise<void> {
    if (this.isFirstLoading) return this.loadMore();
    const { data } = await this.ask(null);
    const nodes = data?.me?.usage?.nodes;
    if (!nodes) return;
    if (nodes.length < PAGE || nodes.some(({ id }) => this.known.has(id))) this.offer(nodes);
    else await this.beginAnew();
  }

  private async beginAnew(): Promise<void> {
    this.rows.length = 0;
    this.waiting = [];
    this.waitingCount = 0;
    this.known.clear();
    this.cursor = null;
    this.hasMore = true;
    // What is on its way belongs to the list before.
    this.turn += 1;
    this.isLoading = false;
    await this.loadMore();
  }

  letIn(): void {
    if (this.waitingCount === 0) return;
    if (this.waitingCount > this.waiting.length) {
      void this.beginAnew();
      return;
    }
    this.rows.unshift(...this.waiting);
    this.waiting = [];
    this.waitingCount = 0;
    this.changed();
  }

  private ask(after: string | null) {
    return refetchQuery(UsageRowsDocument, { first: PAGE, after, filter: this.filter });
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

let kept: { readonly key: string; readonly list: UsageList } | null = null;

/** The list of this question: the one that was shown last, if it was of the same, so that who comes back finds it as it was left. */
export function listOf(filter: UsageFilter): UsageList {
  const key = JSON.stringify(filter);
  if (kept?.key !== key) {
    kept = { key, list: new UsageList(filter) };
    void kept.list.loadMore();
  }
  return kept.list;
}
