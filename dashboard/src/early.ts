/** Entry of its own, which sends the first queries while the rest of the code loads. */
import { sendEarly } from "./client/early-answers.js";
import { OverviewFeedDocument, OverviewUsageDocument, ShellDocument } from "./client/generated/graphql.js";
import { BASE } from "./client/place.js";
import { readRange, variablesOf } from "./pages/overview/range.js";

const OVERVIEW = ["/dashboard", "/dashboard/", "/"];

sendEarly(ShellDocument, {});
if (OVERVIEW.includes(location.pathname.slice(BASE.length))) {
  sendEarly(OverviewUsageDocument, variablesOf(readRange(new URLSearchParams(location.search))));
  sendEarly(OverviewFeedDocument, {});
}
