import type { LogsQueryVariables } from "../../client/generated/graphql.js";
import { readFilter } from "./filters.js";

/** Rows of one page. */
const PAGE_ROWS = 50;
/** Ranges end at the start of the tab, so that a page of the list stays the same query. */
const OPENED_AT = Date.now();

export function toLogsVariables(query: URLSearchParams): LogsQueryVariables {
  const after = query.get("after");
  return { first: PAGE_ROWS, filter: readFilter(query, OPENED_AT), ...(after && { after }) };
}
