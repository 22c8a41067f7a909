/**
 * The places of nodes in the text of a document. graphql-js finds the line of a node by reading the text up to it, once for every
 * error, so the work is the product of length and errors. Here the lines of a text are computed once, at the first error.
 */
import type { ASTNode, SourceLocation } from "graphql";
import { GRAPHQL_ERROR_LOCATIONS_MAX } from "../limits.js";

const PLACE = Symbol("place");

interface Place {
  readonly text: DocumentText;
  readonly start: number;
}

interface Placed {
  [PLACE]?: Place;
}

export class DocumentText {
  #lineStarts: readonly number[] | null = null;

  constructor(private readonly body: string) {}

  /** `start` counts UTF-16 code units from 0; line and column begin at 1. */
  locate(start: number): SourceLocation {
    this.#lineStarts ??= lineStartsOf(this.body);
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#lineStarts[middle] as number) <= start) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: start - (this.#lineStarts[low] as number) + 1 };
  }
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

function lineStartsOf(body: string): number[] {
  const starts = [0];
  for (let at = 0; at < body.length; at += 1) {
    const code = body.charCodeAt(at);
    if (code === CARRIAGE_RETURN && body.charCodeAt(at + 1) === LINE_FEED) at += 1;
    if (code === LINE_FEED || code === CARRIAGE_RETURN) starts.push(at + 1);
  }
  return starts;
}

export function setPlace(node: object, text: DocumentText, start: number): void {
  (node as Placed)[PLACE] = { text, start };
}

/** The place of the first node that has one; undefined when none has. */
export function locationsOf(nodes: readonly ASTNode[] = []): readonly SourceLocation[] | undefined {
  const locations: SourceLocation[] = [];
  for (const node of nodes) {
    const place = (node as Placed)[PLACE];
    if (place) locations.push(place.text.locate(place.start));
    if (locations.length === GRAPHQL_ERROR_LOCATIONS_MAX) break;
  }
  return locations.length === 0 ? undefined : locations;
}
