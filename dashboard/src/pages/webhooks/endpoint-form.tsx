/** The forms that add and change an endpoint, and its secret, which is shown once. */
import { Alert, Button, Checkbox, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
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
import { type ServerForm, useServerForm } from "../../ui/server-form.js";

export const EVENTS: readonly { readonly value: WebhookEvent; readonly name: string; readonly description: string }[] = [
  { value: "USAGE_RECORDED", name: "usage.recorded", description: "A generation was charged." },
  { value: "BALANCE_LOW", name: "balance.low", description: "Your balance fell below what you want to be warned at." },
  { value: "API_KEY_CREATED", name: "api_key.created", description: "A key was made, by you or by an app." },
  { value: "API_KEY_REVOKED", name: "api_key.revoked", description: "A key was revoked." },
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
        label="Address"
        description="Where your program listens: https, and reachable from outside."
        placeholder="https://example.com/sluice"
        type="url"
        {...form.text("url", url, setUrl)}
        autoComplete="off"
        required
        data-autofocus
      />
      <Checkbox.Group label="What it is told" {...form.input("events", [...events], setEvents)}>
        <Stack gap={6} mt={4}>
          {EVENTS.map(({ value, name, description }) => (
            <Checkbox key={value} value={value} label={<span className="mono">{name}</span>} description={description} />
          ))}
        </Stack>
      </Checkbox.Group>
    </>
  );
}

/** What is shown this once. */
export interface Secret {
  readonly id: string;
  readonly secret: string;
}

export function NewEndpoint({
  isOpen,
  onClose,
  onMade,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: (id: string) => void;
}) {
  const [made, setMade] = useState<Secret | null>(null);
  return (
    <Modal
      opened={isOpen}
      onClose={() => (made ? onMade(made.id) : onClose())}
      title={made ? "The endpoint's secret" : "Add an endpoint"}
      size="lg"
      // What is typed, or shown this once, is not lost to a click beside it.
      closeOnClickOutside={false}
    >
      {made ? <ShownSecret secret={made.secret} onClose={() => onMade(made.id)} /> : <NewEndpointForm onMade={setMade} onClose={onClose} />}
    </Modal>
  );
}

function NewEndpointForm({ onMade, onClose }: { readonly onMade: (made: Secret) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(WebhooksCreateDocument);
  const form = useServerForm(FIELDS);
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<string[]>([]);
  const submit = async () => {
    const answer = await create({ input: { url, events: chosenOf(events) } });
    const made = answer.data?.createWebhookEndpoint;
    if (form.accept(answer) && made) onMade({ id: made.webhookEndpoint.id, secret: made.secret });
  };
  return (
    <DialogForm form={form} action="Add the endpoint" onSubmit={submit} onCancel={onClose}>
      <EndpointFields form={form} url={url} setUrl={setUrl} events={events} setEvents={setEvents} />
    </DialogForm>
  );
}

/** What is not touched is not sent: another tab may have changed it meanwhile. */
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
    <Modal opened onClose={onClose} title="Edit the endpoint" size="lg" closeOnClickOutside={false}>
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
        <EndpointFields form={form} url={url ?? endpoint.url} setUrl={setUrl} events={events ?? endpoint.events} setEvents={setEvents} />
        <Text size="sm" c="dimmed">
          What happened before the events are changed is not sent any more.
        </Text>
      </DialogForm>
    </Modal>
  );
}

function chosenOf(values: readonly string[]): WebhookEvent[] {
  return EVENTS.map(({ value }) => value).filter((value) => values.includes(value));
}

export function ShownSecret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Stack>
      <Alert color="yellow" variant="light" title="Copy it now: it is shown this once" role="status">
        Your program checks with it that a message is from here. The gateway does not show it again; it can be replaced by another.
      </Alert>
      <div className="card" data-webhook-secret>
        <Copyable value={secret} label="the secret" />
      </div>
      <Text fw={600}>Check a message</Text>
      <Snippet code={verification(secret)} label="Example for Node" />
      <Group justify="flex-end">
        <Button onClick={onClose}>I have copied it</Button>
      </Group>
    </Stack>
  );
}

function verification(secret: string): string {
  return `// npm install standardwebhooks
import { Webhook } from "standardwebhooks";

const webhook = new Webhook("${secret}");
// The body as text, as it came. Throws for what is not from here.
const { type, data } = webhook.verify(body, request.headers);`;
}
