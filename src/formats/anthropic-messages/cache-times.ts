/**
 * Cache marks of an hour in a Messages request, for models without a price of such caches: coding agents set them with every request, and a
 * shorter cache changes no answer.
 */
import { isRecord } from "../../lib/json.js";
import { withFields } from "../../lib/own-values.js";

const HOUR = "1h";
/** The deepest mark is in a document of a tool's result: each list and each object is one level. */
const DEPTH_MAX = 10;

export const SHORTENED = "cache_control.ttl: 1h was sent as 5m, because this model has no price for a cache of an hour.";

/** The request with marks of five minutes in their place; null without a mark of an hour. */
export function withShortCaches<Input extends object>(input: Input): Input | null {
  const shortened = shorten(input, DEPTH_MAX);
  return shortened === input ? null : (shortened as Input);
}

/** The same value where nothing changes. */
function shorten(value: unknown, depth: number): unknown {
  if (depth === 0) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => shorten(item, depth - 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isRecord(value)) return value;
  let changed = value;
  for (const name of HOLDERS) {
    const held = value[name];
    if (held === undefined || held === null) continue;
    const inner = name === "cache_control" ? shortMark(held) : shorten(held, depth - 1);
    if (inner !== held) changed = withFields(changed, { [name]: inner });
  }
  return changed;
}

/** Fields that are, or lead to, a mark. The schemas of tools and the inputs of calls are the client's own. */
const HOLDERS = ["cache_control", "system", "messages", "tools", "content", "source", "raw"] as const;

function shortMark(mark: unknown): unknown {
  return isRecord(mark) && mark.ttl === HOUR ? withFields(mark, { ttl: "5m" }) : mark;
}
