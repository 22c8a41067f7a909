/** Forms that register and edit an app. The key of a new app is shown once. */
import { Alert, Button, Group, Stack, Textarea, TextInput } from "@mantine/core";
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
import { FormModal } from "../../ui/form-modal.js";
import { type ServerForm, useServerForm } from "../../ui/server-form.js";

type Created = NonNullable<AppsCreateMutation["createApiKey"]>;

export function NewApp({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const [created, setCreated] = useState<Created | null>(null);
  const navigate = useNavigate();
  const close = () => {
    setCreated(null);
    onClose();
  };
  return (
    <FormModal
      opened={isOpen}
      onClose={close}
      title={created ? "App registered" : "Register app"}
      size="lg"
      isSecretShown={created !== null}
    >
      {created ? (
        <Stack>
          <Alert color="yellow" variant="light" title="Copy the app key now. You won’t be able to see it again." role="status">
            The app key is not a secret: your app shows it to everyone that it asks for access. Anyone who has it can spend its budget,
            which is 0 by default.
          </Alert>
          <div className="card" data-app-key>
            <Copyable value={created.key ?? ""} label="app key" />
          </div>
          <Group justify="flex-end">
            <Button
              onClick={() => {
                setCreated(null);
                void navigate(`${addressOf("apps")}/${encodeURIComponent(created.apiKey.id)}`, { state: { appKey: created.key } });
              }}
            >
              Build authorization link
            </Button>
          </Group>
        </Stack>
      ) : (
        <NewAppForm onCreated={setCreated} onClose={close} />
      )}
    </FormModal>
  );
}

function NewAppForm({ onCreated, onClose }: { readonly onCreated: (created: Created) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(AppsCreateDocument);
  const form = useServerForm(["name", "redirectUrls"]);
  const [name, setName] = useState("");
  const [addresses, setAddresses] = useState("");
  const submit = async () => {
    // The app's users pay with keys of their own, so the app key needs no budget.
    const answer = await create({ input: { name, type: "PUBLISHABLE", creditBudget: "0", redirectUrls: toLines(addresses) } });
    if (form.accept(answer) && answer.data?.createApiKey) onCreated(answer.data.createApiKey);
  };
  return (
    <DialogForm form={form} action="Register app" onSubmit={submit} onCancel={onClose}>
      <AppFields form={form} name={name} setName={setName} addresses={addresses} setAddresses={setAddresses} />
    </DialogForm>
  );
}

/** Sends edited fields only, because another tab may have changed the others meanwhile. */
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
    <FormModal opened onClose={onClose} title={`Edit ${app.name}`} size="lg">
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
        <AppFields
          form={form}
          name={name ?? app.name}
          setName={setName}
          addresses={addresses ?? app.redirectUrls.join("\n")}
          setAddresses={setAddresses}
        />
      </DialogForm>
    </FormModal>
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
        description="Shown to users when the app asks for access."
        {...form.text("name", name, setName)}
        autoComplete="off"
        required
        data-autofocus
      />
      <Textarea
        label="Redirect URLs"
        description="Where users return to with the response. One URL per line, at most ten. Requests with other URLs are rejected. Leave empty to allow any safe URL."
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
