/**
 * Iterators that return available items without a promise: a stream has many items, and a promise at each layer costs more than the item.
 */

import { hasFastPaths } from "./fast-paths.js";

export type Pulled<Item> = IteratorResult<Item, unknown> & {
  /** No item follows. */
  readonly isLast?: boolean;
};

export interface PulledIterator<Item> extends AsyncIterator<Item, unknown> {
  /** As `next`, but synchronous when an item is available. It throws where `next` rejects. */
  pull?(): Pulled<Item> | Promise<Pulled<Item>>;
}

export function pullFrom<Item>(iterator: PulledIterator<Item>): Pulled<Item> | Promise<Pulled<Item>> {
  return iterator.pull && hasFastPaths() ? iterator.pull() : iterator.next();
}
