/** Forms that add and edit an endpoint, and its signing secret, which is shown once. */
import { Alert, Button, Checkbox, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import {
  type WebhookEndpointRowFragment,
  type WebhookEvent,
  WebhooksCreateDocument,
  WebhooksUpdateDocument,
} from "../../client/generated/graphql.js";
import { Copyable, Snippet } from "../../ui/copy.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { type ServerForm, useServerForm } from "../../ui/server-form.js";

export const EVENTS: readonly { readonly value: WebhookEvent; readonly name: string; readonly description: string }[] = [
  { value: "USAGE_RECORDED", name: "usage.recorded", description: "A generation was charged." },
  { value: "BALANCE_LOW", name: "balance.low", description: "Your balance fell below the alert threshold." },
  { value: "API_KEY_CREATED", name: "api_key.created", description: "A key was created, by you or by an app." },
  { value: "API_KEY_REVOKED", name: "api_key.revoked", description: "A key was revoked." },
  { value: "ALERT_RAISED", name: "alert.raised", description: "A rule of your account has raised an alert." },
  { value: "RUN_ASKED", name: "run.asked", description: "A call waits because its run has too few credits left." },
  { value: "LIMIT_REACHED", name: "limit.reached", description: "Usage reached a percentage of a limit." },
  { value: "TOP_UP_COMPLETED", name: "top_up.completed", description: "Bought credits are in your account." },
  { value: "TOP_UP_FAILED", name: "top_up.failed", description: "A payment for credits failed." },
  { value: "TOP_UP_REFUNDED", name: "top_up.refunded", description: "A payment was paid back, or its refund failed." },
  { value: "TOP_UP_DISPUTED", name: "top_up.disputed", description: "A payment is disputed, or its dispute was won." },
];

const FIELDS = ["url", "events"];

interface EndpointFieldsProps {
  readonly form: ServerForm;
  readonly url: string;
  readonly setUrl: (url: string) => void;
  readonly events: readonly string[];
  readonly setEvents: (events: string[]) => void;
}

function EndpointFields({ form, url, setUrl, events, setEvents }: EndpointFieldsProps) {
  return (
    <>
      <TextInput
        label="Endpoint URL"
        description="An https URL that is reachable from the internet."
        placeholder="https://example.com/sluice"
        type="url"
        {...form.text("url", url, setUrl)}
        autoComplete="off"
        required
        data-autofocus
      />
      <Checkbox.Group label="Events" {...form.input("events", [...events], setEvents)}>
        <Stack gap={6} mt={4}>
          {EVENTS.map(({ value, name, description }) => (
            <Checkbox key={value} value={value} label={<span className="mono">{name}</span>} description={description} />
          ))}
        </Stack>
      </Checkbox.Group>
    </>
  );
}

export interface Secret {
  readonly id: string;
  readonly secret: string;
}

export function NewEndpoint({
  isOpen,
  onClose,
  onCreated,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onCreated: (id: string) => void;
}) {
  const [created, setCreated] = useState<Secret | null>(null);
  return (
    <FormModal
      opened={isOpen}
      onClose={() => (created ? onCreated(created.id) : onClose())}
      title={created ? "Endpoint added" : "Add endpoint"}
      size="lg"
      isSecretShown={created !== null}
    >
      {created ? (
        <ShownSecret secret={created.secret} onClose={() => onCreated(created.id)} />
      ) : (
        <NewEndpointForm onCreated={setCreated} onClose={onClose} />
      )}
    </FormModal>
  );
}

function NewEndpointForm({ onCreated, onClose }: { readonly onCreated: (created: Secret) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(WebhooksCreateDocument);
  const form = useServerForm(FIELDS);
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<string[]>([]);
  const submit = async () => {
    const answer = await create({ input: { url, events: chosenOf(events) } });
    const created = answer.data?.createWebhookEndpoint;
    if (form.accept(answer) && created) onCreated({ id: created.webhookEndpoint.id, secret: created.secret });
  };
  return (
    <DialogForm form={form} action="Add endpoint" onSubmit={submit} onCancel={onClose}>
      <EndpointFields form={form} url={url} setUrl={setUrl} events={events} setEvents={setEvents} />
    </DialogForm>
  );
}

/** Sends edited fields only, because another tab may have changed the others meanwhile. */
export function EditEndpoint({ endpoint, onClose }: { readonly endpoint: WebhookEndpointRowFragment; readonly onClose: () => void }) {
  const [, update] = useMutation(WebhooksUpdateDocument);
  const form = useServerForm(FIELDS);
  const [url, setUrl] = useState<string>();
  const [events, setEvents] = useState<string[]>();
  const submit = async () => {
    const answer = await update({
      input: { id: endpoint.id, ...(url !== undefined && { url }), ...(events !== undefined && { events: chosenOf(events) }) },
    });
    if (form.accept(answer)) onClose();
  };
  return (
    <FormModal opened onClose={onClose} title="Edit endpoint" size="lg">
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
        <EndpointFields form={form} url={url ?? endpoint.url} setUrl={setUrl} events={events ?? endpoint.events} setEvents={setEvents} />
        <Text size="sm" c="dimmed">
          New events apply from now on. Earlier events are not sent.
        </Text>
      </DialogForm>
    </FormModal>
  );
}

function chosenOf(values: readonly string[]): WebhookEvent[] {
  return EVENTS.map(({ value }) => value).filter((value) => values.includes(value));
}

export function ShownSecret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Stack>
      <Alert color="yellow" variant="light" title="Copy this signing secret now. You won’t be able to see it again." role="status">
        Your program verifies with it that messages come from this gateway. You can rotate the secret at any time.
      </Alert>
      <div className="card" data-webhook-secret>
        <Copyable value={secret} label="signing secret" />
      </div>
      <Text fw={600}>Verify a message</Text>
      <Snippet code={verification(secret)} label="Example for Node" />
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}

function verification(secret: string): string {
  return `// npm install standardwebhooks
import { Webhook } from "standardwebhooks";

const webhook = new Webhook("${secret}");
// Pass the raw body as text. Throws when the signature is invalid.
const { type, data } = webhook.verify(body, request.headers);`;
}
