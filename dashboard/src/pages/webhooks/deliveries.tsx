/** What an endpoint was sent, and what it answered. */
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

/** Nothing tells of deliveries: what is on its way is asked for again. */
const LOOK_AGAIN_MS = 2_000;

const STATUS = {
  PENDING: { label: "on its way", color: "gray" },
  DELIVERED: { label: "delivered", color: "green" },
  FAILED: { label: "failed", color: "red" },
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
  const isMoving = list?.nodes.some(({ status }) => status === "PENDING") ?? false;
  useEffect(() => {
    if (!isMoving) return;
    const timer = setInterval(answer.refetch, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [isMoving, answer.refetch]);
  const shown = search.get("delivery");
  return (
    <Card
      title="Deliveries"
      actions={
        <Button variant="subtle" size="compact-sm" onClick={answer.refetch}>
          Look again
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
            <Empty title="Nothing was sent yet">Send a test event to see whether messages arrive. What was sent is kept for a month.</Empty>
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
    <WideTable label="What was sent" columns={["Event", "State", "Answer", { amount: "Tries" }, "Queued"]} highlightOnHover>
      {deliveries.map((delivery) => (
        <Table.Tr key={delivery.id}>
          <Table.Td style={{ whiteSpace: "nowrap" }}>
            <Anchor component={Link} to={`?delivery=${encodeURIComponent(delivery.id)}`} className="mono" preventScrollReset>
              {delivery.event}
            </Anchor>
          </Table.Td>
          <Table.Td>
            <Status status={delivery.status} />
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

function Status({ status }: { readonly status: WebhookDeliveryRowFragment["status"] }) {
  const { label, color } = STATUS[status];
  return (
    <Badge color={color} variant="light" size="sm">
      {label}
    </Badge>
  );
}

function Answer({ delivery: { lastStatus, lastError, attempts } }: { readonly delivery: WebhookDeliveryRowFragment }) {
  if (lastStatus === null && lastError === null) return <span className="soft">{attempts === 0 ? "not tried yet" : "none yet"}</span>;
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
  const isMoving = answer.data?.node?.__typename === "WebhookDelivery" && answer.data.node.status === "PENDING";
  useEffect(() => {
    if (!isMoving) return;
    const timer = setInterval(answer.refetch, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [isMoving, answer.refetch]);
  return (
    <Modal opened onClose={onClose} title="Delivery" size="lg">
      <QueryView answer={answer} loading={<Loading rows={5} />}>
        {({ node }) =>
          node?.__typename === "WebhookDelivery" ? (
            <DeliveryDetails delivery={node} endpointId={endpointId} isEnabled={isEnabled} onChanged={onChanged} />
          ) : (
            <Empty title="There is no such delivery">What was sent is kept for a month.</Empty>
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
    toast({ message: "It is sent again." });
    onChanged();
  };
  return (
    <Stack>
      <Facts>
        <Fact label="Event">
          <span className="mono">{delivery.event}</span>
        </Fact>
        <Fact label="State">
          <Status status={delivery.status} />
        </Fact>
        <Fact label="Answer">
          <Answer delivery={delivery} />
        </Fact>
        <Fact label="Tries">{delivery.attempts}</Fact>
        {delivery.nextAttemptAt !== null && (
          <Fact label="Next try">
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
          <Copyable value={delivery.restId} label="the message's id" />
        </Fact>
      </Facts>
      <Text fw={600}>What is sent</Text>
      <Snippet code={indentedJson(delivery.message)} label="The body of the message" />
      {error && <Failure error={error} />}
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {isEnabled ? "It keeps its id, by which your program knows that it has seen it." : "Resume the endpoint to send it again."}
        </Text>
        <Button onClick={send} loading={fetching} disabled={!isEnabled}>
          Send again
        </Button>
      </Group>
    </Stack>
  );
}
