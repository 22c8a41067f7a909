/** The forms that register an app and change it. Its key is shown once. */
import { Alert, Button, Group, Modal, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import { useMutation } from "urql";
import {
  AppsCreateDocument,
  type AppsCreateMutation,
  type AppsOwnKeyFragment,
  AppsUpdateDocument,
} from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Copyable } from "../../ui/copy.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { type ServerForm, useServerForm } from "../../ui/server-form.js";

type Made = NonNullable<AppsCreateMutation["createApiKey"]>;

export function NewApp({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const [made, setMade] = useState<Made | null>(null);
  const navigate = useNavigate();
  const close = () => {
    setMade(null);
    onClose();
  };
  return (
    <Modal opened={isOpen} onClose={close} title={made ? "Your new app" : "Register an app"} size="lg" closeOnClickOutside={false}>
      {made ? (
        <Stack>
          <Alert color="yellow" variant="light" title="Copy the app's key now: it is shown this once" role="status">
            It is no secret: your app shows it to whoever it asks. Anyone who has it can spend its budget, which is none unless you give it
            one.
          </Alert>
          <div className="card" data-app-key>
            <Copyable value={made.key} label="the app's key" />
          </div>
          <Group justify="flex-end">
            <Button
              onClick={() => {
                setMade(null);
                void navigate(`${addressOf("apps")}/${encodeURIComponent(made.apiKey.id)}`, { state: { appKey: made.key } });
              }}
            >
              Build a link with it
            </Button>
          </Group>
        </Stack>
      ) : (
        <NewAppForm onMade={setMade} onClose={close} />
      )}
    </Modal>
  );
}

function NewAppForm({ onMade, onClose }: { readonly onMade: (made: Made) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(AppsCreateDocument);
  const form = useServerForm(["name", "redirectUrls"]);
  const [name, setName] = useState("");
  const [addresses, setAddresses] = useState("");
  const submit = async () => {
    // People pay with keys of their own: this one spends nothing of its owner's.
    const answer = await create({ input: { name, type: "PUBLISHABLE", creditBudget: "0", redirectUrls: toLines(addresses) } });
    if (form.accept(answer) && answer.data?.createApiKey) onMade(answer.data.createApiKey);
  };
  return (
    <DialogForm form={form} action="Register the app" onSubmit={submit} onCancel={onClose}>
      <AppFields form={form} name={name} setName={setName} addresses={addresses} setAddresses={setAddresses} />
    </DialogForm>
  );
}

/** What is not touched is not sent: another tab may have changed it meanwhile. */
export function EditApp({ app, onClose }: { readonly app: AppsOwnKeyFragment; readonly onClose: () => void }) {
  const [, update] = useMutation(AppsUpdateDocument);
  const form = useServerForm(["name", "redirectUrls"]);
  const [name, setName] = useState<string>();
  const [addresses, setAddresses] = useState<string>();
  const submit = async () => {
    const changes = { ...(name !== undefined && { name }), ...(addresses !== undefined && { redirectUrls: toLines(addresses) }) };
    if (form.accept(await update({ input: { id: app.id, ...changes } }))) onClose();
  };
  return (
    <Modal opened onClose={onClose} title={`Edit ${app.name}`} size="lg" closeOnClickOutside={false}>
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
        <AppFields
          form={form}
          name={name ?? app.name}
          setName={setName}
          addresses={addresses ?? app.redirectUrls.join("\n")}
          setAddresses={setAddresses}
        />
      </DialogForm>
    </Modal>
  );
}

function AppFields({
  form,
  name,
  setName,
  addresses,
  setAddresses,
}: {
  readonly form: ServerForm;
  readonly name: string;
  readonly setName: (name: string) => void;
  readonly addresses: string;
  readonly setAddresses: (addresses: string) => void;
}) {
  return (
    <>
      <TextInput
        label="Name"
        description="What people are told who asks them."
        {...form.text("name", name, setName)}
        autoComplete="off"
        required
        data-autofocus
      />
      <Textarea
        label="Redirect addresses"
        description="Where people may return to with an answer, one on a line, at most ten. With a list, nobody else can ask in your name. Empty: anywhere that is safe."
        placeholder="https://example.com/callback"
        {...form.text("redirectUrls", addresses, setAddresses)}
        autosize
        minRows={3}
        maxRows={10}
        spellCheck={false}
      />
    </>
  );
}

function toLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
