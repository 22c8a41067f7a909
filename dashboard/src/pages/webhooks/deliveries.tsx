/** Deliveries to an endpoint and its responses. */
import { Anchor, Badge, Button, Group, Modal, Stack, Table, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type WebhookDeliveryRowFragment,
  WebhooksDeliveriesDocument,
  WebhooksDeliveryDocument,
  type WebhooksDeliveryQuery,
  WebhooksRedeliverDocument,
} from "../../client/generated/graphql.js";
import { Copyable, Snippet } from "../../ui/copy.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { indentedJson } from "../../ui/program-text.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";

/** No subscription reports deliveries, so pending ones are polled. */
const POLL_MS = 2_000;

const STATUS = {
  PENDING: { label: "Pending", color: "gray" },
  DELIVERED: { label: "Delivered", color: "green" },
  FAILED: { label: "Failed", color: "red" },
} as const;

export function Deliveries({ endpointId, isEnabled }: { readonly endpointId: string; readonly isEnabled: boolean }) {
  const [after, setAfter] = useState<string | null>(null);
  const [search, setSearch] = useSearchParams();
  const answer = useAnswer({
    query: WebhooksDeliveriesDocument,
    variables: { id: endpointId, ...(after !== null && { after }) },
    requestPolicy: "cache-and-network",
  });
  const list = answer.data?.node?.__typename === "WebhookEndpoint" ? answer.data.node.deliveries : undefined;
  const isPending = list?.nodes.some(({ status }) => status === "PENDING") ?? false;
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(answer.refetch, POLL_MS);
    return () => clearInterval(timer);
  }, [isPending, answer.refetch]);
  const shown = search.get("delivery");
  return (
    <Card
      title="Deliveries"
      actions={
        <Button variant="subtle" size="compact-sm" onClick={answer.refetch}>
          Refresh
        </Button>
      }
    >
      {shown !== null && (
        <Delivery
          id={shown}
          endpointId={endpointId}
          isEnabled={isEnabled}
          onChanged={answer.refetch}
          onClose={() => setSearch({}, { replace: true })}
        />
      )}
      <QueryView answer={answer} loading={<Loading rows={4} height={32} />}>
        {() =>
          !list || list.nodes.length === 0 ? (
            <Empty title="No deliveries yet">Send a test event to check the endpoint. Deliveries are kept for a month.</Empty>
          ) : (
            <Stack gap="sm">
              <DeliveryTable deliveries={list.nodes} />
              <Pager after={after} pageInfo={list.pageInfo} onMove={setAfter} next="Older deliveries" />
            </Stack>
          )
        }
      </QueryView>
    </Card>
  );
}

function DeliveryTable({ deliveries }: { readonly deliveries: readonly WebhookDeliveryRowFragment[] }) {
  return (
    <WideTable label="Deliveries" columns={["Event", "Status", "Response", { amount: "Attempts" }, "Queued"]} highlightOnHover>
      {deliveries.map((delivery) => (
        <Table.Tr key={delivery.id}>
          <Table.Td style={{ whiteSpace: "nowrap" }}>
            <Anchor component={Link} to={`?delivery=${encodeURIComponent(delivery.id)}`} className="mono" preventScrollReset>
              {delivery.event}
            </Anchor>
          </Table.Td>
          <Table.Td>
            <Status delivery={delivery} />
          </Table.Td>
          <Table.Td>
            <Text size="sm" lineClamp={1} className="any-wrap" maw="22rem" miw="8rem">
              <Answer delivery={delivery} />
            </Text>
          </Table.Td>
          <Table.Td ta="right">{delivery.attempts}</Table.Td>
          <WhenCell value={delivery.createdAt} />
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function Status({
  delivery: { status, attempts, lastStatus, lastError, nextAttemptAt },
}: {
  readonly delivery: WebhookDeliveryRowFragment;
}) {
  if (status === "PENDING" && attempts > 0 && (lastStatus !== null || lastError !== null))
    return (
      <>
        <Badge color="orange" variant="light" size="sm">
          Failed
        </Badge>
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          Retried <When value={nextAttemptAt} fallback="soon" />
        </Text>
      </>
    );
  const { label, color } = STATUS[status];
  return (
    <Badge color={color} variant="light" size="sm">
      {label}
    </Badge>
  );
}

function Answer({ delivery: { lastStatus, lastError, attempts } }: { readonly delivery: WebhookDeliveryRowFragment }) {
  if (lastStatus === null && lastError === null) return <span className="soft">{attempts === 0 ? "Not sent yet" : "No response yet"}</span>;
  return (
    <>
      {lastStatus !== null && <span className="mono">{lastStatus}</span>} {lastError !== null && <bdi>{lastError}</bdi>}
    </>
  );
}

type Shown = Extract<NonNullable<WebhooksDeliveryQuery["node"]>, { readonly __typename: "WebhookDelivery" }>;

function Delivery({
  id,
  endpointId,
  isEnabled,
  onChanged,
  onClose,
}: {
  readonly id: string;
  readonly endpointId: string;
  readonly isEnabled: boolean;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}) {
  const answer = useAnswer({ query: WebhooksDeliveryDocument, variables: { id }, requestPolicy: "cache-and-network" });
  const isPending = answer.data?.node?.__typename === "WebhookDelivery" && answer.data.node.status === "PENDING";
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(answer.refetch, POLL_MS);
    return () => clearInterval(timer);
  }, [isPending, answer.refetch]);
  return (
    <Modal opened onClose={onClose} title="Delivery" size="lg">
      <QueryView answer={answer} loading={<Loading rows={5} />}>
        {({ node }) =>
          node?.__typename === "WebhookDelivery" ? (
            <DeliveryDetails delivery={node} endpointId={endpointId} isEnabled={isEnabled} onChanged={onChanged} />
          ) : (
            <Empty title="Delivery not found">Deliveries are kept for a month.</Empty>
          )
        }
      </QueryView>
    </Modal>
  );
}

function DeliveryDetails({
  delivery,
  endpointId,
  isEnabled,
  onChanged,
}: {
  readonly delivery: Shown;
  readonly endpointId: string;
  readonly isEnabled: boolean;
  readonly onChanged: () => void;
}) {
  const [{ fetching, error }, redeliver] = useMutation(WebhooksRedeliverDocument);
  const send = async () => {
    const answer = await redeliver({ input: { endpointId, deliveryId: delivery.id } });
    if (answer.error) return;
    toast({ message: "Delivery queued again." });
    onChanged();
  };
  return (
    <Stack>
      <Facts>
        <Fact label="Event">
          <span className="mono">{delivery.event}</span>
        </Fact>
        <Fact label="Status">
          <Status delivery={delivery} />
        </Fact>
        <Fact label="Response">
          <Answer delivery={delivery} />
        </Fact>
        <Fact label="Attempts">{delivery.attempts}</Fact>
        {delivery.nextAttemptAt !== null && (
          <Fact label="Next attempt">
            <When value={delivery.nextAttemptAt} />
          </Fact>
        )}
        <Fact label="Queued">
          <When value={delivery.createdAt} />
        </Fact>
        {delivery.finishedAt !== null && (
          <Fact label="Finished">
            <When value={delivery.finishedAt} />
          </Fact>
        )}
        <Fact label="webhook-id">
          <Copyable value={delivery.restId} label="message ID" />
        </Fact>
      </Facts>
      <Text fw={600}>Request body</Text>
      <Snippet code={indentedJson(delivery.message)} label="Request body" />
      {error && <Failure error={error} />}
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {isEnabled
            ? "A redelivery has the same webhook-id, so your program can detect duplicates."
            : "Resume the endpoint to send it again."}
        </Text>
        <Button onClick={send} loading={fetching} disabled={!isEnabled}>
          Redeliver
        </Button>
      </Group>
    </Stack>
  );
}
