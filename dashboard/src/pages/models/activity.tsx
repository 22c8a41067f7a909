/** Figures of a model in the last 24 hours. */
import { SimpleGrid, Text } from "@mantine/core";
import type { ModelsOneQuery } from "../../client/generated/graphql.js";
import { formatPercent } from "../../ui/amounts.js";
import { Figure } from "../../ui/figure.js";
import { Card } from "../../ui/page.js";

type Activity = NonNullable<NonNullable<ModelsOneQuery["model"]>["activity"]>;

const DAY_MS = 86_400_000;

export function ActivityCard({ activity }: { readonly activity: Activity }) {
  const { requests, failedRequests, successRate, responseTimeMs, timeToFirstTokenMs, from } = activity;
  const hours = Math.round((Date.now() - Date.parse(from)) / 3_600_000);
  const title = Date.now() - Date.parse(from) < DAY_MS / 2 ? `Last ${hours} hours` : "Last 24 hours";
  if (successRate === null)
    return (
      <Card title={title}>
        <Text c="dimmed">No requests.</Text>
      </Card>
    );
  return (
    <Card title={title}>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
        <Figure label="Requests" value={(requests + failedRequests).toLocaleString("en")}>
          All accounts
        </Figure>
        <Figure label="Success rate" value={formatPercent(successRate)}>
          {failedRequests === 0 ? "No failures" : `${failedRequests.toLocaleString("en")} failed`}
        </Figure>
        <Figure label="Latency (p50)" value={responseTimeMs ? formatMs(responseTimeMs.p50) : "–"}>
          {responseTimeMs && `p95 ${formatMs(responseTimeMs.p95)}`}
        </Figure>
        <Figure label="Time to first token (p50)" value={timeToFirstTokenMs ? formatMs(timeToFirstTokenMs.p50) : "–"}>
          {timeToFirstTokenMs ? `p95 ${formatMs(timeToFirstTokenMs.p95)}` : "No streams"}
        </Figure>
      </SimpleGrid>
    </Card>
  );
}

function formatMs(milliseconds: number): string {
  return milliseconds < 10_000
    ? `${milliseconds.toLocaleString("en")} ms`
    : `${(milliseconds / 1_000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
}
