/** Receipt of one request: cost, usage, timing, model and key. */
import { Anchor, Badge, Group, SimpleGrid, type SimpleGridProps, Stack, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { type ReceiptDetailsFragment, UsageReceiptDocument } from "../../client/generated/graphql.js";
import { addressOf, addressOfModel } from "../../shell/pages.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DAY_MS } from "../../ui/days.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { MODALITIES } from "../../ui/modalities.js";
import { Card, Page } from "../../ui/page.js";
import { When } from "../../ui/when.js";
import { STATUSES } from "./filters.js";

type Shown = ReceiptDetailsFragment;

const ABOVE = [{ label: "Usage", to: addressOf("usage") }];

export function Receipt({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: UsageReceiptDocument, variables: { id } });
  return (
    <DetailView answer={answer} name="request" above={ABOVE} why="It was not charged, or it belongs to another account." all="All requests">
      {({ me }) => me?.usageRecord && <Details record={me.usageRecord} />}
    </DetailView>
  );
}

const KINDS: readonly (readonly [field: Exclude<keyof Shown["usage"], "__typename">, label: string])[] = [
  ["inputTextTokens", "Input text tokens"],
  ["inputCachedTokens", "Input tokens from the prompt cache"],
  ["inputCacheWriteTokens", "Input tokens written to the prompt cache"],
  ["inputAudioTokens", "Input audio tokens"],
  ["inputImageTokens", "Input image tokens"],
  ["outputTextTokens", "Output text tokens"],
  ["outputReasoningTokens", "Output reasoning tokens"],
  ["outputAudioTokens", "Output audio tokens"],
  ["outputImageTokens", "Output image tokens"],
  ["outputVideoSeconds", "Output video, seconds"],
  ["outputAudioSeconds", "Output audio, seconds"],
];

const SOURCES = new Map([
  ["PROVIDER", "Usage as reported by the upstream."],
  ["ESTIMATED", "Usage estimated by the gateway, because the upstream reported none, or less than it delivered."],
  ["PARTIAL", "Usage estimated by the gateway up to the point where the response ended."],
  ["BOUNDED", "The upstream reported more usage than is plausible; the most that is plausible was charged."],
]);
const BUCKETS = new Map([
  ["TIER", "free credits"],
  ["CRYPTO", "credits purchased with crypto"],
  ["PACK", "purchased credits"],
]);

function Details({ record }: { readonly record: Shown }) {
  const { modelId, status } = record;
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
      <ReceiptCards record={record} columns={{ base: 1, md: 2 }} />
    </Page>
  );
}

/** The charge, timing and request of a receipt. */
export function ReceiptCards({ record, columns }: { readonly record: Shown; readonly columns: SimpleGridProps["cols"] }) {
  const { modelId, modelUsedId, responseTimeMs, timeToFirstTokenMs, upstreamMs, gatewayMs, usage } = record;
  const consumed = KINDS.filter(([field]) => usage[field] > 0);
  const isFallback = modelUsedId !== modelId;
  return (
    <>
      <SimpleGrid cols={columns ?? 1}>
        <Card title="Charge">
          <Stack gap="sm">
            <div className="amount">
              <Credits value={record.cost} unit />
            </div>
            <Text size="sm" c="dimmed">
              Paid entirely or mostly from {BUCKETS.get(record.meterSource)}. {SOURCES.get(record.usageSource)}
            </Text>
            {record.appMargin !== null && (
              <Text size="sm" c="dimmed">
                Of it the app’s margin: <Credits value={record.appMargin} unit />.
              </Text>
            )}
            {record.held !== null && (
              <Text size="sm" c="dimmed">
                Hold before the request: <Credits value={record.held} unit />. The unused part was released.
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
            {consumed.length === 0 && <Text c="dimmed">No usage was counted.</Text>}
          </Stack>
        </Card>
        <Card title="Timing">
          <Times whole={responseTimeMs} upstream={upstreamMs} />
          <Facts>
            <Fact label="Total">{responseTimeMs.toLocaleString("en")} ms</Fact>
            {upstreamMs !== null && (
              <Fact label="Upstream">
                <Mark color="var(--good)" /> {milliseconds(upstreamMs)}
              </Fact>
            )}
            {gatewayMs !== null && (
              <Fact label="Gateway">
                <Mark color="var(--strong)" /> {milliseconds(gatewayMs)}
              </Fact>
            )}
            <Fact label="First token">
              {timeToFirstTokenMs === null ? "Not streamed" : `${timeToFirstTokenMs.toLocaleString("en")} ms`}
            </Fact>
            <Fact label="Finished">
              <When value={record.timestamp} /> <span className="soft">({new Date(record.timestamp).toLocaleString("en")})</span>
            </Fact>
          </Facts>
        </Card>
      </SimpleGrid>
      <Card title="Request">
        <Facts>
          <Fact label="Requested model">
            <ModelLink id={record.model?.id} restId={modelId} />
          </Fact>
          <Fact label="Model used">
            <ModelLink id={record.modelUsed?.id} restId={modelUsedId} />
            {isFallback && (
              <Text size="sm" c="dimmed">
                Fallback, because the requested model was unavailable. Charged at the prices of the requested model.
              </Text>
            )}
          </Fact>
          {record.upstream !== null && (
            <Fact label="Upstream">
              <bdi>{record.upstream}</bdi>
            </Fact>
          )}
          <Fact label="Type">{MODALITIES.get(record.modality)}</Fact>
          <Fact label="Key">
            {record.apiKeyId === null ? (
              "None (signed-in session)"
            ) : record.apiKey ? (
              <Anchor component={Link} fz="inherit" to={`${addressOf("keys")}/${encodeURIComponent(record.apiKey.id)}`}>
                <bdi>{record.apiKeyName ?? record.apiKey.name}</bdi>
              </Anchor>
            ) : (
              <bdi>{record.apiKeyName ?? record.apiKeyId}</bdi>
            )}
          </Fact>
          <Fact label="Request ID">
            <Copyable value={record.restId} label="request ID" />
          </Fact>
          {record.parentRequestId !== null && (
            <Fact label="Part of">
              <Parent id={record.parentRequestId} timestamp={record.timestamp} />
            </Fact>
          )}
          {record.job && (
            <Fact label="Job">
              <Group gap={6}>
                <Copyable value={record.job.restId} label="job ID" /> <span className="soft">{record.job.status.toLowerCase()}</span>
              </Group>
            </Fact>
          )}
        </Facts>
      </Card>
    </>
  );
}

/** Links to the agent's request by a search, because only its REST id is known. */
function Parent({ id, timestamp }: { readonly id: string; readonly timestamp: string }) {
  const at = Date.parse(timestamp);
  const query = new URLSearchParams({
    q: id,
    from: new Date(at - DAY_MS).toISOString(),
    to: new Date(at + DAY_MS).toISOString(),
  });
  return (
    <Group gap="xs">
      <Copyable value={id} label="ID of the agent request" />
      <Anchor component={Link} to={`${addressOf("usage")}?${query}`} size="sm">
        View agent request
      </Anchor>
    </Group>
  );
}

function ModelLink({ id, restId }: { readonly id: string | undefined; readonly restId: string }) {
  if (id === undefined) return <span className="any-wrap">{restId} (removed)</span>;
  return (
    <Anchor component={Link} fz="inherit" to={addressOfModel(restId)} className="any-wrap">
      {restId}
    </Anchor>
  );
}

const milliseconds = (value: number) => `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 })} ms`;

/** Bar with the upstream's share of the total time. */
function Times({ whole, upstream }: { readonly whole: number; readonly upstream: number | null }) {
  if (upstream === null) return null;
  const share = whole === 0 ? 100 : Math.min(100, (upstream / whole) * 100);
  return (
    <div
      role="img"
      aria-label={`Upstream: ${milliseconds(upstream)} of ${milliseconds(whole)}`}
      style={{ display: "flex", height: 10, borderRadius: 5, overflow: "hidden", marginBottom: 12, background: "var(--hover)" }}
    >
      <span style={{ flex: 1, background: "var(--strong)" }} />
      <span style={{ width: `${share}%`, background: "var(--good)" }} />
    </div>
  );
}

/** Legend mark for a part of the bar. */
function Mark({ color }: { readonly color: string }) {
  return <span style={{ display: "inline-block", width: 10, height: 10, borderRadius: 3, background: color }} />;
}
