/** One request: what it cost and of what, how long it took, who answered, and who paid. */
import { Anchor, Badge, Group, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { UsageReceiptDocument, type UsageReceiptQuery } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DAY_MS } from "../../ui/days.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { MODALITIES } from "../../ui/modalities.js";
import { Card, Page } from "../../ui/page.js";
import { When } from "../../ui/when.js";
import { STATUSES } from "./filters.js";

type Shown = NonNullable<NonNullable<UsageReceiptQuery["me"]>["usageRecord"]>;

const ABOVE = [{ label: "Usage", to: addressOf("usage") }];

export function Receipt({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: UsageReceiptDocument, variables: { id } });
  return (
    <DetailView answer={answer} name="request" above={ABOVE} why="It was not charged, or belongs to another account." all="All requests">
      {({ me }) => me?.usageRecord && <Details record={me.usageRecord} />}
    </DetailView>
  );
}

const KINDS: readonly (readonly [field: Exclude<keyof Shown["usage"], "__typename">, label: string])[] = [
  ["inputTextTokens", "Tokens of text in"],
  ["inputCachedTokens", "Tokens read from a prompt cache"],
  ["inputCacheWriteTokens", "Tokens written to a prompt cache"],
  ["inputAudioTokens", "Tokens of sound in"],
  ["inputImageTokens", "Tokens of pictures in"],
  ["outputTextTokens", "Tokens of text out"],
  ["outputReasoningTokens", "Tokens of thinking"],
  ["outputAudioTokens", "Tokens of sound out"],
  ["outputImageTokens", "Tokens of pictures out"],
  ["outputVideoSeconds", "Seconds of video out"],
  ["outputAudioSeconds", "Seconds of sound out"],
];

const SOURCES = new Map([
  ["PROVIDER", "the upstream counted"],
  ["ESTIMATED", "the gateway counted, because the upstream said nothing"],
  ["PARTIAL", "the gateway counted, up to where the answer was cut"],
]);
const BUCKETS = new Map([
  ["TIER", "free credits"],
  ["CRYPTO", "credits bought with crypto"],
  ["PACK", "credits bought"],
]);

function Details({ record }: { readonly record: Shown }) {
  const { modelId, modelUsedId, status, responseTimeMs, timeToFirstTokenMs, upstreamMs, gatewayMs, usage } = record;
  const consumed = KINDS.filter(([field]) => usage[field] > 0);
  const isFallback = modelUsedId !== modelId;
  return (
    <Page
      title={
        <>
          Request to <bdi>{record.model?.title ?? modelId}</bdi>
        </>
      }
      tabTitle={`Request to ${record.model?.title ?? modelId}`}
      above={ABOVE}
      actions={
        <Badge size="lg" variant="light" color={status === "OK" ? "green" : "orange"}>
          {STATUSES.get(status)}
        </Badge>
      }
    >
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Charge">
          <Stack gap="sm">
            <div className="amount">
              <Credits value={record.cost} unit />
            </div>
            <Text size="sm" c="dimmed">
              Drawn from {BUCKETS.get(record.meterSource)}, at least the most of it; {SOURCES.get(record.usageSource)}.
            </Text>
            {record.held !== null && (
              <Text size="sm" c="dimmed">
                <Credits value={record.held} unit /> were set aside before; what was not needed was given back.
              </Text>
            )}
            <Table withRowBorders={false} verticalSpacing={4}>
              <Table.Tbody>
                {consumed.map(([field, label]) => (
                  <Table.Tr key={field}>
                    <Table.Th fw={400} c="dimmed" px={0} bg="transparent">
                      {label}
                    </Table.Th>
                    <Table.Td ta="right" px={0}>
                      {usage[field].toLocaleString("en")}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
            {consumed.length === 0 && <Text c="dimmed">Nothing was counted.</Text>}
          </Stack>
        </Card>
        <Card title="Time">
          <Times whole={responseTimeMs} upstream={upstreamMs} />
          <Facts>
            <Fact label="Whole answer">{responseTimeMs.toLocaleString("en")} ms</Fact>
            {upstreamMs !== null && (
              <Fact label="Upstream">
                <Mark color="var(--good)" /> {milliseconds(upstreamMs)}
              </Fact>
            )}
            {gatewayMs !== null && (
              <Fact label="The gateway itself">
                <Mark color="var(--strong)" /> {milliseconds(gatewayMs)}
              </Fact>
            )}
            <Fact label="First piece">
              {timeToFirstTokenMs === null ? "not streamed" : `after ${timeToFirstTokenMs.toLocaleString("en")} ms`}
            </Fact>
            <Fact label="Ended">
              <When value={record.timestamp} /> <span className="soft">({new Date(record.timestamp).toLocaleString("en")})</span>
            </Fact>
          </Facts>
        </Card>
      </SimpleGrid>
      <Card title="Who asked and who answered">
        <Facts>
          <Fact label="Model asked for">
            <ModelLink id={record.model?.id} restId={modelId} />
          </Fact>
          <Fact label="Model that answered">
            <ModelLink id={record.modelUsed?.id} restId={modelUsedId} />
            {isFallback && (
              <Text size="sm" c="dimmed">
                A fallback: the model asked for could not be reached. The prices of the model asked for applied.
              </Text>
            )}
          </Fact>
          <Fact label="Type">{MODALITIES.get(record.modality)}</Fact>
          <Fact label="Key">
            {record.apiKeyId === null ? (
              "none: you, signed in"
            ) : record.apiKey ? (
              <Anchor component={Link} fz="inherit" to={`${addressOf("keys")}/${encodeURIComponent(record.apiKey.id)}`}>
                <bdi>{record.apiKeyName ?? record.apiKey.name}</bdi>
              </Anchor>
            ) : (
              <bdi>{record.apiKeyName ?? record.apiKeyId}</bdi>
            )}
          </Fact>
          <Fact label="Request id">
            <Copyable value={record.restId} label="the request id" />
          </Fact>
          {record.parentRequestId !== null && (
            <Fact label="Part of">
              <Parent id={record.parentRequestId} timestamp={record.timestamp} />
            </Fact>
          )}
          {record.job && (
            <Fact label="Job">
              <Group gap={6}>
                <Copyable value={record.job.restId} label="the job's id" /> <span className="soft">{record.job.status.toLowerCase()}</span>
              </Group>
            </Fact>
          )}
        </Facts>
      </Card>
    </Page>
  );
}

/** An agent's request is found among the others of its day by its id. */
function Parent({ id, timestamp }: { readonly id: string; readonly timestamp: string }) {
  const at = Date.parse(timestamp);
  const query = new URLSearchParams({
    q: id,
    from: new Date(at - DAY_MS).toISOString(),
    to: new Date(at + DAY_MS).toISOString(),
  });
  return (
    <Group gap="xs">
      <Copyable value={id} label="the id of the agent's request" />
      <Anchor component={Link} to={`${addressOf("usage")}?${query}`} size="sm">
        the agent's request
      </Anchor>
    </Group>
  );
}

function ModelLink({ id, restId }: { readonly id: string | undefined; readonly restId: string }) {
  if (id === undefined) return <span className="any-wrap">{restId} (no longer offered)</span>;
  return (
    <Anchor component={Link} fz="inherit" to={`${addressOf("models")}/${encodeURIComponent(id)}`} className="any-wrap">
      {restId}
    </Anchor>
  );
}

const milliseconds = (value: number) => `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 })} ms`;

/** How much of the time was the upstream's, where that is known. */
function Times({ whole, upstream }: { readonly whole: number; readonly upstream: number | null }) {
  if (upstream === null) return null;
  const share = whole === 0 ? 100 : Math.min(100, (upstream / whole) * 100);
  return (
    <div
      role="img"
      aria-label={`${milliseconds(upstream)} of ${milliseconds(whole)} were the upstream's`}
      style={{ display: "flex", height: 10, borderRadius: 5, overflow: "hidden", marginBottom: 12, background: "var(--hover)" }}
    >
      <span style={{ flex: 1, background: "var(--strong)" }} />
      <span style={{ width: `${share}%`, background: "var(--good)" }} />
    </div>
  );
}

/** Which part of the bar is meant. */
function Mark({ color }: { readonly color: string }) {
  return <span style={{ display: "inline-block", width: 10, height: 10, borderRadius: 3, background: color }} />;
}
