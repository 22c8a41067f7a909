/** Webhook endpoints of the account and their deliveries. */
import { Alert, Anchor, Badge, Button, Group, Modal, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type WebhookEndpointRowFragment,
  WebhooksDeleteDocument,
  WebhooksDeliveriesDocument,
  WebhooksListDocument,
  WebhooksOneDocument,
  WebhooksRotateDocument,
  WebhooksTestDocument,
  WebhooksUpdateDocument,
} from "../../client/generated/graphql.js";
import { prefetch, refetchQuery } from "../../client/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card, Page } from "../../ui/page.js";
import { secretModal } from "../../ui/secret-modal.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { Deliveries } from "./deliveries.js";
import { EditEndpoint, EVENTS, NewEndpoint, ShownSecret } from "./endpoint-form.js";

export function start({ params: { id } }: { readonly params: Readonly<Record<string, string | undefined>> }): void {
  if (id === undefined) prefetch(WebhooksListDocument, {});
  else {
    prefetch(WebhooksOneDocument, { id });
    prefetch(WebhooksDeliveriesDocument, { id });
  }
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Endpoints /> : <OneEndpoint id={id} />;
}

/** An empty result names no type, so the cache needs this hint to refetch the list when the first endpoint is added. */
const OF_ENDPOINTS = { additionalTypenames: ["WebhookEndpoint"] };

function Endpoints() {
  const [search, setSearch] = useSearchParams();
  const navigate = useNavigate();
  const answer = useAnswer({ query: WebhooksListDocument, context: OF_ENDPOINTS });
  const add = () => setSearch({ new: "" });
  return (
    <Page
      title="Webhooks"
      description="Receive events of your account at your own URL. Failed deliveries are retried for some hours."
      actions={<Button onClick={add}>Add endpoint</Button>}
    >
      <NewEndpoint
        isOpen={search.has("new")}
        onClose={() => setSearch({}, { replace: true })}
        onCreated={(id) => navigate(`${addressOf("webhooks")}/${encodeURIComponent(id)}`, { replace: true })}
      />
      <Card>
        <QueryView answer={answer} loading={<Loading rows={3} height={40} />}>
          {({ me }) => {
            const endpoints = me?.webhookEndpoints?.nodes ?? [];
            return endpoints.length === 0 ? (
              <Empty title="No endpoints yet" action={<Button onClick={add}>Add endpoint</Button>}>
                Add a URL of your program to receive events about charges, keys and a low balance.
              </Empty>
            ) : (
              <EndpointTable endpoints={endpoints} />
            );
          }}
        </QueryView>
      </Card>
    </Page>
  );
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly WebhookEndpointRowFragment[] }) {
  return (
    <WideTable label="Your endpoints" columns={["URL", "Status", "Events", "Added"]} highlightOnHover>
      {endpoints.map((endpoint) => (
        <Table.Tr key={endpoint.id}>
          <Table.Td miw={200} maw={440}>
            <Anchor component={Link} to={encodeURIComponent(endpoint.id)} className="any-wrap" fw={600} lineClamp={2}>
              <bdi>{endpoint.url}</bdi>
            </Anchor>
          </Table.Td>
          <Table.Td>
            <State endpoint={endpoint} />
          </Table.Td>
          <Table.Td className="mono">
            {namesOf(endpoint).map((name) => (
              <div key={name}>{name}</div>
            ))}
          </Table.Td>
          <WhenCell value={endpoint.createdAt} />
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function namesOf({ events }: WebhookEndpointRowFragment): readonly string[] {
  return EVENTS.filter(({ value }) => events.includes(value)).map(({ name }) => name);
}

function State({ endpoint: { isEnabled, disabledReason, failingSince } }: EndpointProps) {
  const [label, color] = isEnabled
    ? failingSince === null
      ? ["Enabled", "green"]
      : ["Failing", "orange"]
    : disabledReason === null
      ? ["Paused", "gray"]
      : ["Disabled", "red"];
  return (
    <Badge color={color} variant="light">
      {label}
    </Badge>
  );
}

const ABOVE = [{ label: "Webhooks", to: addressOf("webhooks") }];

function OneEndpoint({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: WebhooksOneDocument, variables: { id }, requestPolicy: "cache-and-network" });
  return (
    <DetailView
      answer={answer}
      name="endpoint"
      above={ABOVE}
      why="It may have been deleted, or it belongs to another account."
      all="All endpoints"
    >
      {({ node }) => node?.__typename === "WebhookEndpoint" && <EndpointDetails endpoint={node} />}
    </DetailView>
  );
}

interface EndpointProps {
  readonly endpoint: WebhookEndpointRowFragment;
}

function EndpointDetails({ endpoint }: EndpointProps) {
  const { id, url, isEnabled } = endpoint;
  const [isEditing, setEditing] = useState(false);
  return (
    <Page
      title={<bdi>{url}</bdi>}
      tabTitle={hostOf(url)}
      above={ABOVE}
      actions={
        <>
          <TestButton id={id} isEnabled={isEnabled} />
          <PauseButton endpoint={endpoint} />
          <Button variant="default" onClick={() => setEditing(true)}>
            Edit
          </Button>
        </>
      }
    >
      {isEditing && <EditEndpoint endpoint={endpoint} onClose={() => setEditing(false)} />}
      <FailureNotice endpoint={endpoint} />
      <Card title="Endpoint" actions={<EndpointActions endpoint={endpoint} />}>
        <Facts>
          <Fact label="Status">
            <State endpoint={endpoint} />
          </Fact>
          <Fact label="Events">
            <span className="mono">{namesOf(endpoint).join(", ")}</span>
          </Fact>
          <Fact label="ID">
            <Copyable value={endpoint.restId} label="ID" />
          </Fact>
          <Fact label="Added">
            <When value={endpoint.createdAt} />
          </Fact>
        </Facts>
      </Card>
      <Deliveries endpointId={id} isEnabled={isEnabled} />
    </Page>
  );
}

function FailureNotice({ endpoint: { isEnabled, disabledReason, failingSince } }: EndpointProps) {
  if (!isEnabled && disabledReason !== null) {
    return (
      <Alert color="red" variant="light" title="The gateway has disabled this endpoint">
        {disabledReason === "GONE" ? "It responded with 410 Gone." : "All deliveries have failed for three days."} Fix the endpoint, then
        resume it. Events that happen meanwhile are not sent.
      </Alert>
    );
  }
  if (isEnabled && failingSince !== null) {
    return (
      <Alert color="orange" variant="light" title="Deliveries are failing">
        All attempts have failed, the first one <When value={failingSince} />. After three days the endpoint is disabled.
      </Alert>
    );
  }
  return null;
}

function TestButton({ id, isEnabled }: { readonly id: string; readonly isEnabled: boolean }) {
  const [{ fetching, error }, test] = useMutation(WebhooksTestDocument);
  const send = async () => {
    const answer = await test({ input: { endpointId: id } });
    if (answer.error) return;
    toast({ message: "Test event queued." });
    await refetchQuery(WebhooksDeliveriesDocument, { id });
  };
  return (
    <>
      {error && (
        <Text size="sm" c="red" role="alert" className="any-wrap">
          {error.graphQLErrors[0]?.message ?? "Cannot reach the gateway."}
        </Text>
      )}
      <Button onClick={send} loading={fetching} disabled={!isEnabled} title={isEnabled ? undefined : "Resume the endpoint first"}>
        Send test event
      </Button>
    </>
  );
}

function PauseButton({ endpoint: { id, isEnabled } }: EndpointProps) {
  const [{ fetching, error }, update] = useMutation(WebhooksUpdateDocument);
  if (!isEnabled) {
    return (
      <>
        {error && <Failure error={error} />}
        <Button variant="default" loading={fetching} onClick={() => update({ input: { id, isEnabled: true } })}>
          Resume
        </Button>
      </>
    );
  }
  return (
    <Confirm
      title="Pause this endpoint?"
      action="Pause endpoint"
      color="blue"
      onConfirm={async () => (await update({ input: { id, isEnabled: false } })).error}
      trigger={(open) => (
        <Button variant="default" onClick={open}>
          Pause
        </Button>
      )}
    >
      <Text>No events are sent until you resume it. Pending deliveries fail, and events that happen meanwhile are not sent later.</Text>
    </Confirm>
  );
}

function EndpointActions({ endpoint: { id, url } }: EndpointProps) {
  const [, rotate] = useMutation(WebhooksRotateDocument);
  const [, remove] = useMutation(WebhooksDeleteDocument);
  const [secret, setSecret] = useState<string | null>(null);
  const navigate = useNavigate();
  return (
    <Group gap="xs">
      <Modal opened={secret !== null} onClose={() => setSecret(null)} title="Secret rotated" size="lg" {...secretModal(true)}>
        {secret !== null && <ShownSecret secret={secret} onClose={() => setSecret(null)} />}
      </Modal>
      <Confirm
        title="Rotate secret?"
        action="Rotate secret"
        color="blue"
        onConfirm={async () => {
          const { data, error } = await rotate({ input: { id } });
          setSecret(data?.rotateWebhookSecret?.secret ?? null);
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" size="compact-sm" onClick={open}>
            Rotate secret
          </Button>
        )}
      >
        <Text>For 24 hours, messages are signed with both the current and the new secret. Update your program within that time.</Text>
      </Confirm>
      <Confirm
        title="Delete this endpoint?"
        action="Delete endpoint"
        onConfirm={async () => {
          const { error } = await remove({ input: { id } });
          if (error) return error;
          await refetchQuery(WebhooksListDocument, {});
          navigate(addressOf("webhooks"));
          return undefined;
        }}
        trigger={(open) => (
          <Button color="red" variant="light" size="compact-sm" onClick={open}>
            Delete
          </Button>
        )}
      >
        <Stack gap="xs">
          <Text>
            <bdi>{url}</bdi> will receive no more events. Its deliveries are deleted, including pending ones.
          </Text>
        </Stack>
      </Confirm>
    </Group>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
