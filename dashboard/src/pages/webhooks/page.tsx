/** Endpoints that are told what happens to the account, and what each was sent. */
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

/** An empty list names no endpoint, and would not be asked for anew when the first is added. */
const OF_ENDPOINTS = { additionalTypenames: ["WebhookEndpoint"] };

function Endpoints() {
  const [search, setSearch] = useSearchParams();
  const navigate = useNavigate();
  const answer = useAnswer({ query: WebhooksListDocument, context: OF_ENDPOINTS });
  const add = () => setSearch({ new: "" });
  return (
    <Page
      title="Webhooks"
      description="Your program is told what happens: a message goes to each endpoint as soon as something does, and is tried again for some hours when it does not arrive."
      actions={<Button onClick={add}>Add an endpoint</Button>}
    >
      <NewEndpoint
        isOpen={search.has("new")}
        onClose={() => setSearch({}, { replace: true })}
        onMade={(id) => navigate(`${addressOf("webhooks")}/${encodeURIComponent(id)}`, { replace: true })}
      />
      <Card>
        <QueryView answer={answer} loading={<Loading rows={3} height={40} />}>
          {({ me }) => {
            const endpoints = me?.webhookEndpoints?.nodes ?? [];
            return endpoints.length === 0 ? (
              <Empty title="You have no endpoints yet" action={<Button onClick={add}>Add an endpoint</Button>}>
                Add the address of a program of yours to have it told of charges, keys and a low balance.
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
    <WideTable label="Your endpoints" columns={["Address", "State", "Is told", "Added"]} highlightOnHover>
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
      ? ["listening", "green"]
      : ["failing", "orange"]
    : disabledReason === null
      ? ["paused", "gray"]
      : ["switched off", "red"];
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
      why="It may have been deleted, or belong to another account."
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
      <Trouble endpoint={endpoint} />
      <Card title="Endpoint" actions={<SecretAndEnd endpoint={endpoint} />}>
        <Facts>
          <Fact label="State">
            <State endpoint={endpoint} />
          </Fact>
          <Fact label="Is told">
            <span className="mono">{namesOf(endpoint).join(", ")}</span>
          </Fact>
          <Fact label="Id">
            <Copyable value={endpoint.restId} label="the id" />
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

function Trouble({ endpoint: { isEnabled, disabledReason, failingSince } }: EndpointProps) {
  if (!isEnabled && disabledReason !== null) {
    return (
      <Alert color="red" variant="light" title="The gateway has switched it off">
        {disabledReason === "GONE" ? "It answered 410, which asks to be told nothing any more." : "Every try has failed for three days."}{" "}
        Mend it, then resume. What happened meanwhile is not sent.
      </Alert>
    );
  }
  if (isEnabled && failingSince !== null) {
    return (
      <Alert color="orange" variant="light" title="It does not answer as it should">
        Every try has failed, first <When value={failingSince} />. After three days of it the endpoint is switched off.
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
    toast({ message: "A test event is on its way." });
    await refetchQuery(WebhooksDeliveriesDocument, { id });
  };
  return (
    <>
      {error && (
        <Text size="sm" c="red" role="alert" className="any-wrap">
          {error.graphQLErrors[0]?.message ?? "The gateway cannot be reached."}
        </Text>
      )}
      <Button onClick={send} loading={fetching} disabled={!isEnabled} title={isEnabled ? undefined : "Resume it first"}>
        Send a test event
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
      action="Pause the endpoint"
      color="blue"
      onConfirm={async () => (await update({ input: { id, isEnabled: false } })).error}
      trigger={(open) => (
        <Button variant="default" onClick={open}>
          Pause
        </Button>
      )}
    >
      <Text>It is sent nothing until you resume it. What is on its way has failed, and what happens meanwhile is not sent later.</Text>
    </Confirm>
  );
}

function SecretAndEnd({ endpoint: { id, url } }: EndpointProps) {
  const [, rotate] = useMutation(WebhooksRotateDocument);
  const [, remove] = useMutation(WebhooksDeleteDocument);
  const [secret, setSecret] = useState<string | null>(null);
  const navigate = useNavigate();
  return (
    <Group gap="xs">
      <Modal opened={secret !== null} onClose={() => setSecret(null)} title="The new secret" size="lg" closeOnClickOutside={false}>
        {secret !== null && <ShownSecret secret={secret} onClose={() => setSecret(null)} />}
      </Modal>
      <Confirm
        title="Replace the secret?"
        action="Replace the secret"
        color="blue"
        onConfirm={async () => {
          const { data, error } = await rotate({ input: { id } });
          setSecret(data?.rotateWebhookSecret?.secret ?? null);
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" size="compact-sm" onClick={open}>
            Replace the secret
          </Button>
        )}
      >
        <Text>
          For 24 hours messages are signed with both, the one of now and the new one: so long your program has to learn the new one.
        </Text>
      </Confirm>
      <Confirm
        title="Delete this endpoint?"
        action="Delete the endpoint"
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
            <bdi>{url}</bdi> is told nothing any more. Its log goes with it, and so does what still waits to be sent.
          </Text>
        </Stack>
      </Confirm>
    </Group>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
