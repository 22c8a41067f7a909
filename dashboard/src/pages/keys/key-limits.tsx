/** Limits of a key that renew, with the usage of their windows. Shows nothing for a key without them. */
import { Progress, Stack, Table, Text } from "@mantine/core";
import { useMemo } from "react";
import { useAnswer } from "../../client/answer.js";
import { type KeyLimitFragment, KeysLimitsDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { When } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";

const METRICS = { CREDITS: "credits", REQUESTS: "requests", TOKENS: "tokens", CONCURRENCY: "requests at once" } as const;

export function KeyLimits({ id }: { readonly id: string }) {
  const { data } = useAnswer({ query: KeysLimitsDocument, variables: useMemo(() => ({ id }), [id]) });
  const limits = data?.me?.usageLimits?.nodes ?? [];
  if (limits.length === 0) return null;
  return (
    <Card title="Limits that renew">
      <WideTable label="Limits of this key" columns={["Limit", "Window", "Model", "Used", "Renews"]}>
        {limits.map((limit) => (
          <Table.Tr key={limit.id}>
            <Table.Td>
              {limit.amount} {METRICS[limit.metric]}
            </Table.Td>
            <Table.Td>{windowOf(limit)}</Table.Td>
            <Table.Td>{limit.modelId ?? "All models"}</Table.Td>
            <Table.Td>
              <Used {...limit} />
            </Table.Td>
            <Table.Td>{limit.usage?.renewsAt ? <When value={limit.usage.renewsAt} /> : "–"}</Table.Td>
          </Table.Tr>
        ))}
      </WideTable>
    </Card>
  );
}

function Used({ usage, alertAt, metric }: KeyLimitFragment) {
  if (!usage || metric === "CONCURRENCY") return null;
  const isAlerted = alertAt.some((percent) => usage.percent >= percent);
  return (
    <Stack gap={4}>
      <Text size="sm">
        {usage.spent} ({usage.percent}%)
      </Text>
      <Progress
        value={usage.percent}
        color={isAlerted || usage.percent >= 90 ? "orange" : "blue"}
        size="sm"
        aria-label={`${usage.percent}% used`}
      />
    </Stack>
  );
}

function windowOf({ period, minutes, isRolling, timeZone, metric }: KeyLimitFragment): string {
  if (metric === "CONCURRENCY") return "–";
  const length = period === null ? `${minutes} minutes` : period.toLowerCase();
  return isRolling ? `Last ${length}` : `Each ${length}, ${timeZone}`;
}
