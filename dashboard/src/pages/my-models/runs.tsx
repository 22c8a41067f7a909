/** How the last runs of a code agent went, and what it said in its owner's own. */
import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { type AgentRunOutcome, MyModelsRunsDocument, type MyModelsRunsQuery } from "../../client/generated/graphql.js";
import { useLive } from "../../shell/live.js";
import { Snippet } from "../../ui/copy.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";

const WORDS: Readonly<Record<AgentRunOutcome, readonly [word: string, color: string]>> = {
  ANSWERED: ["answered", "green"],
  FAILED: ["failed", "red"],
  CANCELLED: ["broken off by its caller", "gray"],
  PROCESSOR_TIME: ["used too much processor time", "red"],
  TIME: ["took too long", "red"],
  MEMORY: ["needed too much memory", "red"],
  SENT: ["sent too much", "red"],
  PRINTED: ["printed too much", "red"],
};

/** An answer that its own program calls a failure. */
const REFUSED_STATUS_MIN = 400;

type Run = NonNullable<Extract<NonNullable<MyModelsRunsQuery["node"]>, { readonly __typename: "CodeAgent" }>["runs"]>[number];

export function LastRuns({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: MyModelsRunsDocument, variables: { id } });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, answer.refetch);
  return (
    <Card
      title="Its last runs"
      actions={
        <Button variant="default" size="xs" onClick={answer.refetch} loading={answer.fetching && answer.data !== undefined}>
          Look again
        </Button>
      }
    >
      <QueryView answer={answer} loading={<Loading rows={3} height={36} />}>
        {({ node }) => {
          const runs = node?.__typename === "CodeAgent" ? (node.runs ?? []) : [];
          return runs.length === 0 ? (
            <Empty title="It has not been called yet">What it prints with console.log and what it fails with is shown here.</Empty>
          ) : (
            <Stack gap="md">
              <Text size="sm" c="dimmed">
                The last 20. What it printed and what it failed with is shown of your own calls only: of others’ it may be what they asked.
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
  const [word, color] = WORDS[outcome];
  const isRefused = status !== null && status >= REFUSED_STATUS_MIN;
  return (
    <Stack gap={4}>
      <Group gap="sm">
        <Badge color={isRefused ? "orange" : color} variant="light" tt="none" miw="max-content">
          {isRefused ? `${word} ${status}` : word}
        </Badge>
        <Text size="sm">
          <When value={startedAt} />
        </Text>
        <Text size="sm" c="dimmed">
          {durationMs.toLocaleString("en")} ms
        </Text>
        <Text size="sm" c="dimmed">
          {isOwn ? "called by you" : "called by somebody else"}
        </Text>
      </Group>
      {error !== null && <Said label="It failed with" text={error} />}
      {output !== null && <Said label="It printed" text={output} />}
    </Stack>
  );
}

function Said({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Snippet code={text.trimEnd()} label={label} wraps maxHeight="14rem" />
    </div>
  );
}
