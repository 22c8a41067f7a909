/**
 * Iterators of what comes bit by bit, whose readers make no promise for what is here already: a stream has many bits, and a promise at each
 * layer that each of them passes costs more than the bit itself.
 */

export type Pulled<Item> = IteratorResult<Item, unknown> & {
  /** Nothing follows: it need not be asked for. */
  readonly isLast?: boolean;
};

export interface PulledIterator<Item> extends AsyncIterator<Item, unknown> {
  /** As `next`, but at once when it can. What it throws at once, `next` rejects with. */
  pull?(): Pulled<Item> | Promise<Pulled<Item>>;
}

export function pullFrom<Item>(iterator: PulledIterator<Item>): Pulled<Item> | Promise<Pulled<Item>> {
  return iterator.pull ? iterator.pull() : iterator.next();
}
