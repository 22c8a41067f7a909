/** Last runs of a code agent, with errors and output of the owner's own calls. */
import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { type AgentRunOutcome, MyModelsRunsDocument, type MyModelsRunsQuery } from "../../client/generated/graphql.js";
import { useLive } from "../../shell/live.js";
import { Snippet } from "../../ui/copy.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";

const OUTCOMES: Readonly<Record<AgentRunOutcome, readonly [label: string, color: string]>> = {
  ANSWERED: ["Answered", "green"],
  FAILED: ["Failed", "red"],
  CANCELLED: ["Cancelled by caller", "gray"],
  PROCESSOR_TIME: ["CPU limit exceeded", "red"],
  TIME: ["Time limit exceeded", "red"],
  MEMORY: ["Memory limit exceeded", "red"],
  SENT: ["Response size limit exceeded", "red"],
  PRINTED: ["Log size limit exceeded", "red"],
};

/** HTTP status from which the agent's own answer counts as an error. */
const ERROR_STATUS_MIN = 400;

type Run = NonNullable<Extract<NonNullable<MyModelsRunsQuery["node"]>, { readonly __typename: "CodeAgent" }>["runs"]>[number];

export function LastRuns({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: MyModelsRunsDocument, variables: { id } });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, answer.refetch);
  return (
    <Card
      title="Recent runs"
      actions={
        <Button variant="default" size="xs" onClick={answer.refetch} loading={answer.fetching && answer.data !== undefined}>
          Refresh
        </Button>
      }
    >
      <QueryView answer={answer} loading={<Loading rows={3} height={36} />}>
        {({ node }) => {
          const runs = node?.__typename === "CodeAgent" ? (node.runs ?? []) : [];
          return runs.length === 0 ? (
            <Empty title="No runs yet">Errors and the output of console.log appear here.</Empty>
          ) : (
            <Stack gap="md">
              <Text size="sm" c="dimmed">
                The last 20 runs. Errors and output are shown for your own calls only, because they may contain other users’ requests.
              </Text>
              <Stack component="ol" gap="md" m={0} p={0} style={{ listStyle: "none" }}>
                {runs.map((run) => (
                  <li key={`${run.startedAt} ${run.durationMs}`}>
                    <OneRun run={run} />
                  </li>
                ))}
              </Stack>
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

function OneRun({ run: { startedAt, durationMs, outcome, status, isOwn, error, output } }: { readonly run: Run }) {
  const [label, color] = OUTCOMES[outcome];
  const isError = status !== null && status >= ERROR_STATUS_MIN;
  return (
    <Stack gap={4}>
      <Group gap="sm">
        <Badge color={isError ? "orange" : color} variant="light" tt="none" miw="max-content">
          {isError ? `${label} ${status}` : label}
        </Badge>
        <Text size="sm">
          <When value={startedAt} />
        </Text>
        <Text size="sm" c="dimmed">
          {durationMs.toLocaleString("en")} ms
        </Text>
        <Text size="sm" c="dimmed">
          {isOwn ? "Called by you" : "Called by another user"}
        </Text>
      </Group>
      {error !== null && <Output label="Error" text={error} />}
      {output !== null && <Output label="Output" text={output} />}
    </Stack>
  );
}

function Output({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Snippet code={text.trimEnd()} label={label} wraps maxHeight="14rem" />
    </div>
  );
}
